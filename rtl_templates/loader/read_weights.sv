// Requests the weight tiles that a pass loads from a weight port, in the order of feed_weights. The first are the tiles
// of this pass that are not in the buffer yet. Then follows the first tile of the next pass, so that no pass waits for
// its first weights.
module read_weights
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    input weight_plan_t plan,
    output logic command_valid,
    input logic command_ready,
    output logic [31:0] command_address,
    output logic [31:0] command_words
);
    logic next_pending, first_is_loaded, pass_pending;
    number_t remaining;  // tiles of this pass that are not requested yet
    number_t tile, offset;

    // The pass before has loaded the first tile, except at the start of a frame.
    assign first_is_loaded = !plan.first && pass.channel_tiles > 1;
    assign pass_pending = remaining != 0;
    assign command_valid = pass_pending || next_pending;
    assign command_address = pass_pending ? pass.weights_base + offset : plan.next_base;
    assign command_words = pass_pending ? pass.tile_beats : plan.next_beats;

    logic last_tile;
    assign last_tile = tile + 1 == pass.channel_tiles;

    always_ff @(posedge clk) begin
        if (reset) begin
            remaining <= '0;
            next_pending <= 1'b0;
        end else if (start) begin
            remaining <= plan.loads + number_t'(plan.first);
            next_pending <= plan.next_beats != 0;
            tile <= first_is_loaded ? 1 : 0;
            offset <= first_is_loaded ? pass.tile_beats : 0;
        end else if (command_valid && command_ready) begin
            if (!pass_pending) next_pending <= 1'b0;
            else remaining <= remaining - 1;
            tile <= last_tile ? 0 : tile + 1;
            offset <= last_tile ? 0 : offset + pass.tile_beats;
        end
    end
endmodule

// Bound into read_weights. The tiles that a pass loads for itself are requested again and again, each at its address.
// The first request is for the second tile or, at the start of a frame, for the first tile. Then the next pass's first
// tile is requested. The plan says the number of requests. A command is stable until it is accepted.
module read_weights_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input pass_t pass,
    input weight_plan_t plan,
    input logic command_valid,
    input logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    input number_t remaining,
    input logic next_pending,
    input number_t tile,
    input number_t offset
);
    localparam number_t MOST = 7;
    logic began = 1'b0, more, waited, started;
    number_t loaded, pass_pending, own_tile;  // requested tiles; the pass's own tiles; the next of its own
    logic [31:0] was_address, was_words;
    pass_t was_pass;
    weight_plan_t was_plan;
    logic is_own;
    assign pass_pending = plan.loads + number_t'(plan.first);
    assign is_own = loaded < pass_pending;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        started <= start && !reset;
        was_pass <= pass;
        was_plan <= plan;
        waited <= command_valid && !command_ready && !reset;
        was_address <= command_address;
        was_words <= command_words;
        if (reset) more <= 1'b0;
        else if (start) begin
            more <= pass_pending != 0 || plan.next_beats != 0;
            loaded <= 0;
            own_tile <= plan.first || pass.channel_tiles == 1 ? 0 : 1;
        end else if (command_valid && command_ready) begin
            loaded <= loaded + 1;
            own_tile <= own_tile == pass.channel_tiles - 1 ? 0 : own_tile + 1;
            if (loaded + 1 == pass_pending + number_t'(plan.next_beats != 0)) more <= 1'b0;
        end
    end
    always_comb begin
        if (!began) assume (reset);
        if (began && (more || started)) assume (pass == was_pass && plan == was_plan);
        if (began && more) assume (!start);
        assume (plan.loads >= 0 && plan.loads < MOST && plan.next_beats >= 0);
        assume (pass.channel_tiles > 0 && pass.channel_tiles < MOST);
    end
    always_comb if (began) begin
        assert (command_valid == more);
        if (waited) assert (command_valid && command_address == was_address && command_words == was_words);
        if (more) begin
            assert (number_t'(command_address)
                == (is_own ? number_t'(pass.weights_base + own_tile * pass.tile_beats) : plan.next_base));
            assert (number_t'(command_words) == (is_own ? pass.tile_beats : plan.next_beats));
            assert (loaded >= 0 && loaded < pass_pending + number_t'(plan.next_beats != 0));
            assert (remaining == pass_pending - (is_own ? loaded : pass_pending) && next_pending == (plan.next_beats != 0));
            if (is_own) assert (tile == own_tile && offset == number_t'(own_tile * pass.tile_beats));
            assert (own_tile >= 0 && own_tile < pass.channel_tiles);
        end
    end
endmodule
bind read_weights read_weights_proof proof (.*);

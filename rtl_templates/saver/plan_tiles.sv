// Computes the tiles of a pass (the output rows and columns that the array computes together) in advance for the pool,
// which only compares its counters with them.
module plan_tiles
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    output logic tile_valid,
    input logic tile_ready,
    output pool_tile_t tile
);
    logic more;
    number_t row, channel, first_row, stored_address;

    logic last_row, last_channel, last;
    assign last_row = row + 1 == pass.row_tiles;
    assign last_channel = channel + 1 == pass.channel_tiles;
    assign last = last_row && last_channel;

    tile_rows_t rows;
    tile_rows of_tile (.pass, .first_row, .first(row == 0), .last(last_row), .rows);
    assign tile.rows = rows;
    assign tile.last_group = ((rows.output_rows + SAVE_ROWS - 1) >>> $clog2(SAVE_ROWS)) - 1;
    assign tile.channel = channel;
    assign tile.stored_address = stored_address;
    assign tile.last = last;
    assign tile_valid = more;

    // Channel tiles are the inner loop. If the pass keeps all its input rows on chip, row tiles are.
    logic next_channel, next_row;
    assign next_channel = pass.inputs_resident == 0 || last_row;
    assign next_row = pass.inputs_resident != 0 || last_channel;

    always_ff @(posedge clk) begin
        if (reset) begin
            more <= 1'b0;
        end else if (start) begin
            more <= 1'b1;
            {row, channel, first_row, stored_address} <= '0;
        end else if (tile_valid && tile_ready) begin
            more <= !last;
            if (next_channel) channel <= last_channel && pass.inputs_resident == 0 ? 0 : channel + 1;
            if (next_row) begin
                row <= last_row ? 0 : row + 1;
                first_row <= last_row ? 0 : first_row + ROWS;
            end
            // Sums are stored for each channel tile of a row tile.
            stored_address <= next_row ? 0 : stored_address + pass.save_width;
        end
    end
endmodule

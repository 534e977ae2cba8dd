// Bound into plan_tiles. Every channel tile of every row tile is output once, in the order of the pass, and the last
// one is marked. The saved rows of a column of tiles are the rows of the pooled map. A tile is stable until it is
// accepted, and a tile is valid until the last one is accepted.
module plan_tiles_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input pass_t pass,
    input logic tile_valid,
    input logic tile_ready,
    input pool_tile_t tile,
    input number_t row,
    input number_t channel,
    input number_t first_row
);
    localparam number_t MOST = 8;
    logic began = 1'b0, more, waited, last_row, last_channel, resident, halving, lagging, started;
    number_t rows, channels, output_rows;  // completed
    pass_t was_pass;
    pool_tile_t was_tile;
    assign resident = pass.inputs_resident != 0;
    assign last_row = rows == pass.row_tiles - 1;
    assign last_channel = channels == pass.channel_tiles - 1;
    assign lagging = pass.pool_size != 1 && pass.pool_stride == 1;
    assign halving = pass.pool_size != 1 && !lagging;

    number_t height, above;  // rows of the pooled map, and its rows above row tile ``rows``
    assign height = halving ? (pass.out_height + 1) >>> 1
        : UPSCALE > 1 && pass.upscale > 1 ? 2 * pass.out_height : pass.out_height;
    assign above = halving ? (rows * ROWS) >>> 1 : lagging ? maximum(rows * ROWS - 1, 0)
        : UPSCALE > 1 && pass.upscale > 1 ? 2 * ROWS * rows : rows * ROWS;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        started <= start && !reset;
        was_pass <= pass;
        was_tile <= tile;
        waited <= tile_valid && !tile_ready && !reset;
        if (reset) more <= 1'b0;
        else if (start) begin
            more <= 1'b1;
            {rows, channels, output_rows} <= '0;
        end else if (tile_valid && tile_ready) begin
            if (last_row && last_channel) more <= 1'b0;
            if (resident || last_channel) begin
                rows <= last_row ? 0 : rows + 1;
                output_rows <= last_row ? 0 : output_rows + tile.rows.output_rows;
            end
            if (!resident || last_row) channels <= last_channel ? 0 : channels + 1;
        end
    end
    always_comb begin
        if (!began) assume (reset);
        if (began && (more || started)) assume (pass == was_pass);
        if (began && more) assume (!start);
        assume (pass.row_tiles > 0 && pass.row_tiles < MOST && pass.channel_tiles > 0 && pass.channel_tiles < MOST);
        assume (pass.save_width > 0 && pass.save_width < MOST);
        assume (pass.out_height > (pass.row_tiles - 1) * ROWS && pass.out_height <= pass.row_tiles * ROWS);
        assume (pass.pool_size == 1 || pass.pool_stride == 1 || pass.pool_stride == 2);
        if (UPSCALE > 1 && pass.upscale > 1) assume (pass.pool_size == 1);
    end
    always_comb if (began) begin
        assert (tile_valid == more);
        if (waited) assert (tile_valid && tile == was_tile);
        if (more) begin
            assert (tile.channel == channels && tile.last == (last_row && last_channel));
            assert (tile.rows.rows > 0 && tile.rows.rows == minimum(ROWS, pass.out_height - rows * ROWS));
            assert (tile.rows.output_rows > 0 && output_rows == above);
            if (last_row) assert (output_rows + tile.rows.output_rows == height);
            assert ((tile.last_group + 1) * SAVE_ROWS >= tile.rows.output_rows && tile.last_group * SAVE_ROWS < tile.rows.output_rows);
            // The kept row above the tile's first window, if any, and its place among the kept rows of all channel
            // tiles.
            assert (tile.rows.stored_rows == number_t'((lagging && rows > 0) || (halving && (rows * ROWS) % 2 == 1)));
            assert (tile.stored_address == (resident ? 0 : channels * pass.save_width));
            assert (row == rows && channel == channels && first_row == rows * ROWS);
            assert (rows >= 0 && rows < pass.row_tiles && channels >= 0 && channels < pass.channel_tiles);
        end
    end
endmodule
bind plan_tiles plan_tiles_proof proof (.*);

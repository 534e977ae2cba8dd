// Bound into plan_chunks. Every tile of the pass, in order, is split into chunks of CHUNK columns and one chunk of the
// rest. The module is done after the number of chunks that the pass says. The begin of a chunk follows from its row
// tile, channel tile and column. A chunk is stable until it is accepted, and the next one is valid one or two cycles
// later.
module plan_chunks_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input logic done,
    input pass_t pass,
    input logic chunk_valid,
    input logic chunk_ready,
    input chunk_t chunk,
    input tile_rows_t rows_now,
    input number_t row,
    input number_t channel,
    input number_t first_row,
    input number_t remaining,
    input number_t x,
    input number_t first_block,
    input number_t block_offset,
    input number_t column_offset,
    input number_t tile_pitch,
    input number_t shared_pitch,
    input number_t saved_now,
    input number_t output_row_words,
    input logic products_valid
);
    localparam number_t MOST = 4;
    logic began = 1'b0, more, waited, idled, last_row, last_channel, last_piece, resident, started;
    number_t rows, channels, pieces, output_rows;  // completed tiles and pieces; completed rows of the map
    pass_t was_pass;
    chunk_t was_chunk;
    assign resident = pass.inputs_resident != 0;
    assign last_row = rows == pass.row_tiles - 1;
    assign last_channel = channels == pass.channel_tiles - 1;
    assign last_piece = (pieces + 1) * CHUNK >= pass.save_width;

    number_t width, tiles_left, first_channel;  // pieces of a tile
    assign width = (pass.save_width + CHUNK - 1) / CHUNK;
    assign tiles_left = resident ? (pass.channel_tiles - 1 - channels) * pass.row_tiles + pass.row_tiles - 1 - rows
        : (pass.row_tiles - 1 - rows) * pass.channel_tiles + pass.channel_tiles - 1 - channels;
    assign first_channel = channels * COLUMNS;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        started <= start && !reset;
        was_pass <= pass;
        was_chunk <= chunk;
        waited <= chunk_valid && !chunk_ready && !reset;
        idled <= !done && !chunk_valid && !reset;
        if (reset) more <= 1'b0;
        else if (start) begin
            more <= 1'b1;
            {rows, channels, pieces, output_rows} <= '0;
        end else if (chunk_valid && chunk_ready) begin
            pieces <= last_piece ? 0 : pieces + 1;
            if (last_piece) begin
                if (last_row && last_channel) more <= 1'b0;
                if (resident || last_channel) begin
                    rows <= last_row ? 0 : rows + 1;
                    output_rows <= last_row ? 0 : output_rows + chunk.rows;
                end
                if (!resident || last_row) channels <= last_channel ? 0 : channels + 1;
            end
        end
    end
    always_comb begin
        if (!began) assume (reset);
        if (began && (more || started || start)) assume (pass == was_pass);
        if (began && more) assume (!start);
        assume (pass.row_tiles > 0 && pass.row_tiles < MOST && pass.channel_tiles > 0 && pass.channel_tiles < MOST);
        assume (pass.save_width > 0 && pass.save_width < MOST * CHUNK);
        assume (pass.out_height > (pass.row_tiles - 1) * ROWS && pass.out_height <= pass.row_tiles * ROWS);
        assume (pass.pool_size == 1 || pass.pool_stride == 1 || pass.pool_stride == 2);
        assume (pass.chunks == pass.row_tiles * pass.channel_tiles * width);
        assume (pass.out_blocks * LANES >= pass.channel_tiles * COLUMNS && pass.out_blocks < 16);
        assume (pass.value_words == 1 || pass.value_words == RESULT_WORDS);
        assume (pass.out_turn >= 0 && pass.out_turn < ROWS);
    end
    always_comb if (began) begin
        assert (done == !more);
        if (waited) assert (chunk_valid && chunk == was_chunk);
        if (idled) assert (chunk_valid);
        if (chunk_valid) begin
            assert (chunk.columns == minimum(CHUNK, pass.save_width - pieces * CHUNK) && chunk.columns > 0);
            assert (chunk.rows == rows_now.output_rows && chunk.row_offset == address_product(pass.out_row_pitch, output_rows));
            assert (chunk.blocks == minimum(TILE_BLOCKS, pass.out_blocks - first_channel / LANES));
            assert (chunk.odd == (first_channel % LANES != 0));
            assert (chunk.offset == address_product(pass.out_block_pitch, first_channel / LANES)
                + pieces * result_words(pass.value_words, CHUNK));
            assert (chunk.bank == (pass.out_turn + output_rows) % ROWS);
            assert (chunk.lap == address_product(pass.out_row_pitch, (pass.out_turn + output_rows) / ROWS));
        end
        assert (tile_pitch == address_product(was_pass.out_block_pitch, TILE_BLOCKS));
        // The state of the module.
        if (more) begin
            assert (remaining == tiles_left * width + width - pieces && chunk_valid == products_valid);
            assert (row == rows && channel == channels && first_row == rows * ROWS && x == pieces * CHUNK);
            assert (rows >= 0 && rows < pass.row_tiles && channels >= 0 && channels < pass.channel_tiles);
            assert (pieces >= 0 && pieces < width && output_rows >= 0 && output_rows <= rows * ROWS);
            assert (first_block == first_channel / LANES && block_offset == address_product(pass.out_block_pitch, first_block));
            if (!started) assert (shared_pitch == number_t'(tile_pitch - (HALF_BLOCKS ? pass.out_block_pitch : 0)));
            if (products_valid) assert (saved_now == rows_now.output_rows && output_row_words == address_product(pass.out_row_pitch, rows_now.output_rows));
            if (pieces != 0) assert (products_valid);
        end
    end
endmodule
bind plan_chunks plan_chunks_proof proof (.*, .rows_now(rows), .saved_now(output_rows));

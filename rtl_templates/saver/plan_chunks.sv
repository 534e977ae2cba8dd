// Computes the chunks of a pass (up to CHUNK columns of a tile each) in advance, for arrange and for every port that
// writes: the start of each chunk in DDR or in a map buffer, and its columns, rows and channel blocks. With a residual
// add, it also computes its start in that map.
module plan_chunks
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    output logic done,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    output logic chunk_valid,
    input logic chunk_ready,
    output chunk_t chunk,
    output number_t added_row_offset  // as the chunk's row_offset, in a residual map in DDR
);
    number_t remaining, x, first_block, block_offset, column_offset, row_offset;
    number_t row, channel, first_row, bank, lap, next_bank;

    logic last_row, last_channel, next_channel, next_row, ends_tile;
    assign last_row = row + 1 == pass.row_tiles;
    assign last_channel = channel + 1 == pass.channel_tiles;
    assign next_channel = pass.inputs_resident == 0 || last_row;
    assign next_row = pass.inputs_resident != 0 || last_channel;
    assign ends_tile = x + CHUNK >= pass.save_width;

    // verilator lint_off UNUSEDSIGNAL
    tile_rows_t rows;
    // verilator lint_on UNUSEDSIGNAL
    tile_rows of_tile (.pass, .first_row, .first(row == 0), .last(last_row), .rows);

    // Products are registered. A pass is valid a cycle before its start, and a row tile is ``products_valid`` one cycle
    // after it begins.
    number_t tile_pitch, shared_pitch, output_rows, output_row_words, lap_pitch;
    logic products_valid, odd;  // odd: the channel tile begins within the block in which the last tile ended
    always_ff @(posedge clk) begin
        tile_pitch <= address_product(pass.out_block_pitch, TILE_BLOCKS);
        shared_pitch <= tile_pitch - (HALF_BLOCKS ? pass.out_block_pitch : 0);  // the next tile begins in its last block
        output_rows <= rows.output_rows;
        output_row_words <= address_product(pass.out_row_pitch, rows.output_rows);
    end

    // In a map buffer, the output and the residual map have the same layout. If only the residual map is there, its row
    // pitch is used.
    // verilator lint_off UNUSEDSIGNAL
    addition_t addition;
    // verilator lint_on UNUSEDSIGNAL
    assign addition = addition_of(pass);
    assign lap_pitch = ADDED_MAPS > 0 && pass.out_buffer == 0 ? addition.row_pitch : pass.out_row_pitch;
    if (ADDED_MAPS == 0) begin : no_residual
        assign added_row_offset = 0;
    end else begin : added
        number_t offset, words;
        always_ff @(posedge clk) begin
            words <= address_product(addition.row_pitch, rows.output_rows);
            if (start) offset <= 0;
            else if (chunk_valid && chunk_ready && ends_tile && next_row) offset <= last_row ? 0 : offset + words;
        end
        assign added_row_offset = offset;
    end

    assign done = remaining == 0;
    assign chunk_valid = !done && products_valid;
    assign chunk.columns = minimum(CHUNK, pass.save_width - x);
    assign chunk.rows = output_rows;
    assign chunk.blocks = minimum(TILE_BLOCKS, pass.out_blocks - first_block);
    assign chunk.row_offset = row_offset;
    assign chunk.offset = block_offset + column_offset;
    assign chunk.bank = bank;
    assign chunk.lap = lap;
    assign odd = HALF_BLOCKS && channel[0];
    assign chunk.odd = odd;
    assign next_bank = bank + output_rows;  // not used after the last row tile

    always_ff @(posedge clk) begin
        if (reset) begin
            remaining <= 0;
            products_valid <= 1'b0;
        end else if (start) begin
            remaining <= pass.chunks;
            products_valid <= 1'b0;
            {x, first_block, block_offset, column_offset, row_offset, row, channel, first_row, lap} <= '0;
            bank <= pass.out_turn;
        end else if (!products_valid) begin
            products_valid <= 1'b1;
        end else if (chunk_valid && chunk_ready) begin
            remaining <= remaining - 1;
            products_valid <= !(ends_tile && next_row);
            x <= ends_tile ? 0 : x + CHUNK;
            column_offset <= ends_tile ? 0 : column_offset + result_words(pass.value_words, CHUNK);
            if (ends_tile && next_channel) begin
                channel <= last_channel ? 0 : channel + 1;
                first_block <= last_channel ? 0 : first_block + (odd ? TILE_BLOCKS : COLUMNS / LANES);
                block_offset <= last_channel ? 0 : block_offset + (odd ? tile_pitch : shared_pitch);
            end
            if (ends_tile && next_row) begin
                row <= last_row ? 0 : row + 1;
                first_row <= last_row ? 0 : first_row + ROWS;
                row_offset <= last_row ? 0 : row_offset + output_row_words;
                bank <= last_row ? pass.out_turn : bank_of(next_bank);
                lap <= last_row ? 0 : lap + lap_offset(next_bank, lap_pitch);
            end
        end
    end
endmodule

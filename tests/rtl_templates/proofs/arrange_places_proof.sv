// Bound into arrange, which writes to ports, or to a map buffer if the array has map buffers. The proof follows the
// results of any one row and column of a chunk. They are stored in the buffer from the cycle in which they are taken
// until they have been written out, and no other results are stored there. They are written out in the word that holds
// them in the map: the word of their row, block and column, with the other results of their block. The channel tile
// begins in the first or the second half of a block. In a map buffer the word is written to the bank of its row, at the
// address that the pass and the chunk give. A bank is written only with a row of the chunk that belongs to the bank.
module arrange_places_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input pass_t pass,
    input logic chunk_valid,
    input logic chunk_ready,
    input chunk_t chunk,
    input logic result_valid,
    input logic result_ready,
    input results_t result,
    // inside
    input logic [1:0] full,
    input chunk_t [1:0] chunks,
    input logic half,
    input logic out_half,
    input number_t x,
    input number_t group,
    input number_t row,
    input number_t block,
    input number_t column,
    input number_t word,
    input logic drain,
    input logic drain_done,
    input logic [MAP_PORTS-1:0] s1_valid,
    input logic s1_buffer_write,
    input number_t block_offset,
    input number_t [1:0] places,
    input logic [ROWS-1:0] buffer_write,
    input logic [1:0] buffer_write_halves,
    input number_t [ROWS-1:0] buffer_write_address,
    input word_t [ROWS-1:0] buffer_write_words,
    input word_t [MAP_PORTS-1:0] output_words,  // words that enter the FIFOs
    input logic [TILE_BLOCKS*RESULT_WORDS*WORD_BITS-1:0] bank_0[2*BANK_ROWS*CHUNK],
    input logic [TILE_BLOCKS*RESULT_WORDS*WORD_BITS-1:0] bank_1[2*BANK_ROWS*CHUNK]
);
    localparam int RESULTS = TILE_BLOCKS * LANES;
    localparam bit ON_CHIP = MAP_DEPTH > 0;
    localparam number_t TOGETHER = ON_CHIP ? ROW_BANKS : MAP_PORTS;  // rows that are written out per cycle
    typedef word_t [TILE_BLOCKS-1:0][RESULT_WORDS-1:0] column_t;
    logic began = 1'b0, was_chunk_waiting;
    pass_t was_pass;
    chunk_t was_chunk;

    // The results of any one row and column, and their place in the buffer.
    logic any_half, its_half, have, comes, output_ready, left, have_left;  // any: undriven, so that the solver chooses it
    number_t any_row, any_column, its_row, its_column, left_block, left_word, left_port;
    column_t words, left_words, stored, expected;
    logic [RESULTS-1:0][RESULT_BITS-1:0] results;
    number_t place;
    always_comb begin
        results = '0;
        for (int n = 0; n < COLUMNS; n++)  // an odd tile begins in the middle of a block
            if (HALF_BLOCKS && chunk.odd) results[n+LANES/2] = its_row[0] ? result[1][n] : result[0][n];
            else results[n] = its_row[0] ? result[1][n] : result[0][n];
        expected = '0;
        for (int b = 0; b < TILE_BLOCKS; b++)
            for (int l = 0; l < LANES; l++)
                if (pass.value_words == 1) expected[b][0][l*VALUE_BITS+:VALUE_BITS] = VALUE_BITS'(results[b*LANES+l]);
                else expected[b][l*RESULT_BITS/WORD_BITS][l*RESULT_BITS%WORD_BITS+:RESULT_BITS] = results[b*LANES+l];
    end
    assign place = (its_half ? BANK_ROWS * CHUNK : 0) + (its_row >>> 1) * CHUNK + its_column;
    assign stored = its_row[0] ? bank_1[place] : bank_0[place];
    assign comes = result_valid && result_ready && half == its_half && x == its_column && group == (its_row >>> 1)
        && its_row < chunk.rows;
    assign output_ready = drain && out_half == its_half && row <= its_row && its_row < row + TOGETHER && column == its_column;

    // The address at which each bank of a map buffer is written, with the row that belongs to the bank.
    logic [ROWS-1:0] writes, written, was_written;
    number_t [ROWS-1:0] writes_place, written_place, was_place;
    logic kept;  // the row of the results was written out two cycles before
    number_t left_bank, kept_bank;
    word_t kept_word;
    logic [1:0] tile_halves, left_halves, was_halves;
    always_comb begin
        {writes, writes_place} = '0;
        for (int r = 0; r < ROW_BANKS; r++) begin
            automatic number_t in_turn = chunks[out_half].bank + row + r, to = in_turn % ROWS;
            if (ON_CHIP && drain && row + r < chunks[out_half].rows) begin
                writes[to] = 1'b1;
                writes_place[to] = places[out_half] + block * pass.out_block_pitch + column
                    + (in_turn / ROWS - number_t'(to < pass.out_turn)) * pass.out_row_pitch;
            end
        end
        tile_halves = 2'b11;
        if (HALF_BLOCKS && chunks[out_half].odd && block == 0) tile_halves = 2'b10;
        if (HALF_BLOCKS && !chunks[out_half].odd && block == TILE_BLOCKS - 1) tile_halves = 2'b01;
    end

    always_ff @(posedge clk) begin
        began <= 1'b1;
        {was_pass, was_chunk} <= {pass, chunk};
        was_chunk_waiting <= chunk_valid && !chunk_ready && !reset;
        {its_half, its_row, its_column} <= began ? {its_half, its_row, its_column} : {any_half, any_row, any_column};
        have <= !reset && (comes || (have && !(drain_done && out_half == its_half)));
        if (comes) words <= expected;
        left <= output_ready && !reset;
        {have_left, left_words} <= {have, words};
        {left_block, left_word, left_port} <= {block, word, its_row - row};
        kept <= left && have_left && !reset;
        {kept_bank, kept_word} <= {left_bank, left_words[left_block][left_word]};
        left_bank <= (chunks[out_half].bank + its_row) % ROWS;
        {was_written, was_place} <= {reset ? '0 : written, written_place};
        {written, written_place} <= {reset ? '0 : writes, writes_place};
        {was_halves, left_halves} <= {left_halves, tile_halves};
    end

    always_comb begin
        if (!began) assume (reset);
        if (began) assume (pass == was_pass);
        if (began && was_chunk_waiting) assume (chunk_valid && chunk == was_chunk);
        assume (chunk.rows > 0 && chunk.rows <= MAX_OUTPUT_ROWS && chunk.columns > 0 && chunk.columns <= CHUNK);
        assume (chunk.blocks > 0 && chunk.blocks <= TILE_BLOCKS);
        assume (pass.value_words == 1 || pass.value_words == RESULT_WORDS);
        assume (ON_CHIP == (pass.out_buffer != 0));
        if (ON_CHIP) assume (pass.value_words == 1 && pass.out_turn >= 0 && pass.out_turn < ROWS);
        if (ON_CHIP) assume (chunk.bank >= 0 && chunk.bank < ROWS);
        assume (any_row >= 0 && any_row < MAX_OUTPUT_ROWS && any_column >= 0 && any_column < CHUNK);
    end
    always_comb if (began) begin
        assert (its_row >= 0 && its_row < MAX_OUTPUT_ROWS && its_column >= 0 && its_column < CHUNK);
        // The state of the module.
        assert (full == 2'b11 || full == 2'b00 ? half == out_half : full[out_half] && half != out_half);
        assert (x >= 0 && group >= 0);
        if (x != 0 || group != 0) assert (chunk_valid && !full[half] && x < chunk.columns && group * SAVE_ROWS < chunk.rows);
        for (int h = 0; h < 2; h++) if (full[h]) begin
            assert (chunks[h].rows > 0 && chunks[h].rows <= MAX_OUTPUT_ROWS && chunks[h].columns > 0 && chunks[h].columns <= CHUNK);
            assert (chunks[h].blocks > 0 && chunks[h].blocks <= TILE_BLOCKS);
            if (ON_CHIP) assert (chunks[h].bank >= 0 && chunks[h].bank < ROWS);
            if (ON_CHIP) assert (places[h] == number_t'(pass.out_base + chunks[h].offset + chunks[h].lap));
        end
        if (full[out_half]) begin
            assert (row >= 0 && row < chunks[out_half].rows && block >= 0 && block < chunks[out_half].blocks);
            assert (column >= 0 && column < chunks[out_half].columns && word >= 0 && word < pass.value_words);
        end else assert (row == 0 && block == 0 && column == 0 && word == 0);
        // The results are stored from their arrival until their chunk is written out.
        assert (!comes || !have);
        if (full[its_half]) assert (have == (its_row < chunks[its_half].rows && its_column < chunks[its_half].columns));
        else if (half == its_half && chunk_valid)
            assert (have == (its_row < chunk.rows && (its_column < x || (its_column == x && (its_row >>> 1) < group))));
        else assert (!have);
        if (have) assert (stored == words);
        // They are written out with their block and word.
        if (left) begin
            if (!ON_CHIP) assert (s1_valid[left_port] == have_left);
            if (have_left && !ON_CHIP) assert (output_words[left_port] == left_words[left_block][left_word]);
        end
        if (ON_CHIP) begin
            assert (block_offset == number_t'(block * pass.out_block_pitch));
            assert (s1_valid == '0 && buffer_write == was_written && s1_buffer_write == (written != '0));
            for (int bank = 0; bank < ROWS; bank++) if (was_written[bank]) assert (buffer_write_address[bank] == was_place[bank]);
            if (buffer_write != '0) assert (buffer_write_halves == was_halves);
            if (kept) assert (buffer_write[kept_bank] && buffer_write_words[kept_bank] == kept_word);
        end
    end
endmodule
bind arrange arrange_places_proof proof (.*, .output_words(ports[0].saved.in_data[WORD_BITS-1:0]),
    .bank_0(banks[0].rows.memory), .bank_1(banks[1].rows.memory));

// Bound into arrange, to ports: each result of a chunk, any one, lies in the buffer from the time that it is taken until it
// has left, where no other is put; and it leaves in the word that the map has it in: of its row, its block and its column,
// beside the results of its block, in the half of it in which the channel tile begins.
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
    input logic empties,
    input logic emptied,
    input logic [MAP_PORTS-1:0] s1_valid,
    input word_t [MAP_PORTS-1:0] leaving,  // words that come to the FIFOs
    input logic [TILE_BLOCKS*RESULT_WORDS*WORD_BITS-1:0] bank_0[2*BANK_ROWS*CHUNK],
    input logic [TILE_BLOCKS*RESULT_WORDS*WORD_BITS-1:0] bank_1[2*BANK_ROWS*CHUNK]
);
    localparam int RESULTS = TILE_BLOCKS * LANES;
    typedef word_t [TILE_BLOCKS-1:0][RESULT_WORDS-1:0] column_t;
    logic began = 1'b0, was_chunk_waiting;
    pass_t was_pass;
    chunk_t was_chunk;

    // The results of a row and column, any ones, and where they are put.
    logic any_half, its_half, have, comes, leaves, left, have_left;  // any: driven by nothing
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
    assign leaves = empties && out_half == its_half && row <= its_row && its_row < row + MAP_PORTS && column == its_column;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        {was_pass, was_chunk} <= {pass, chunk};
        was_chunk_waiting <= chunk_valid && !chunk_ready && !reset;
        {its_half, its_row, its_column} <= began ? {its_half, its_row, its_column} : {any_half, any_row, any_column};
        have <= !reset && (comes || (have && !(emptied && out_half == its_half)));
        if (comes) words <= expected;
        left <= leaves && !reset;
        {have_left, left_words} <= {have, words};
        {left_block, left_word, left_port} <= {block, word, its_row - row};
    end
    always_comb begin
        if (!began) assume (reset);
        if (began) assume (pass == was_pass);
        if (began && was_chunk_waiting) assume (chunk_valid && chunk == was_chunk);
        assume (chunk.rows > 0 && chunk.rows <= SAVED_ROWS && chunk.columns > 0 && chunk.columns <= CHUNK);
        assume (chunk.blocks > 0 && chunk.blocks <= TILE_BLOCKS);
        assume (pass.value_words == 1 || pass.value_words == RESULT_WORDS);
        assume (pass.out_buffer == 0);
        assume (any_row >= 0 && any_row < SAVED_ROWS && any_column >= 0 && any_column < CHUNK);
    end
    always_comb if (began) begin
        assert (its_row >= 0 && its_row < SAVED_ROWS && its_column >= 0 && its_column < CHUNK);
        // Where the module stands.
        assert (full == 2'b11 || full == 2'b00 ? half == out_half : full[out_half] && half != out_half);
        assert (x >= 0 && group >= 0);
        if (x != 0 || group != 0) assert (chunk_valid && !full[half] && x < chunk.columns && group * SAVE_ROWS < chunk.rows);
        for (int h = 0; h < 2; h++) if (full[h]) begin
            assert (chunks[h].rows > 0 && chunks[h].rows <= SAVED_ROWS && chunks[h].columns > 0 && chunks[h].columns <= CHUNK);
            assert (chunks[h].blocks > 0 && chunks[h].blocks <= TILE_BLOCKS);
        end
        if (full[out_half]) begin
            assert (row >= 0 && row < chunks[out_half].rows && block >= 0 && block < chunks[out_half].blocks);
            assert (column >= 0 && column < chunks[out_half].columns && word >= 0 && word < pass.value_words);
        end else assert (row == 0 && block == 0 && column == 0 && word == 0);
        // The results: there from when they come on, as long as the chunk is.
        assert (!comes || !have);
        if (full[its_half]) assert (have == (its_row < chunks[its_half].rows && its_column < chunks[its_half].columns));
        else if (half == its_half && chunk_valid)
            assert (have == (its_row < chunk.rows && (its_column < x || (its_column == x && (its_row >>> 1) < group))));
        else assert (!have);
        if (have) assert (stored == words);
        // They leave with their block and word.
        if (left) begin
            assert (s1_valid[left_port] == have_left);
            if (have_left) assert (leaving[left_port] == left_words[left_block][left_word]);
        end
    end
endmodule
bind arrange arrange_places_proof proof (.*, .leaving(ports[0].saved.in_data[WORD_BITS-1:0]),
    .bank_0(banks[0].rows.memory), .bank_1(banks[1].rows.memory));

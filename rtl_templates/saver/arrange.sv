// Transposes results: they arrive column by column and are output row by row, as DDR needs them. The results of a chunk
// are written into one half of a buffer. Meanwhile the chunk before is read from the other half, row by row: one word
// per cycle and port, or per map-buffer bank that the rows of a chunk occupy.
//
// With a residual add, one word of one row is read per cycle, and added to the word of the residual map. That map is
// read from DDR in the same order, or from the map buffer that the pass does not read its input from. The sum is valid
// SUM_LATENCY cycles later.
module arrange
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    output logic done,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    input logic chunk_valid,
    output logic chunk_ready,
    // verilator lint_off UNUSEDSIGNAL
    input chunk_t chunk,
    // verilator lint_on UNUSEDSIGNAL
    input logic result_valid,
    output logic result_ready,
    input results_t result,
    output logic [SAVE_PORTS-1:0] words_valid,
    input logic [SAVE_PORTS-1:0] words_ready,
    output word_t [SAVE_PORTS-1:0] words,
    output logic [SAVE_PORTS-1:0][1:0] words_halves,  // the halves of each word that are written
    // The residual map: words from DDR, or from a map buffer, one cycle after their address.
    // verilator lint_off UNUSEDSIGNAL
    input logic added_valid,
    output logic added_ready,
    input word_t added,
    output number_t [ROWS-1:0] buffer_read_address,
    input word_t [ROWS-1:0] buffer_read_words,
    // verilator lint_on UNUSEDSIGNAL
    output logic [ROWS-1:0] buffer_write,
    output logic [1:0] buffer_write_halves,
    output number_t [ROWS-1:0] buffer_write_address,
    output word_t [ROWS-1:0] buffer_write_words
);
    localparam int DEPTH = 2 * BANK_ROWS * CHUNK;
    localparam int ADDRESS_BITS = $clog2(DEPTH);
    localparam int LATENCY = 2;  // from an address to its words in the FIFOs
    localparam int SUM_LATENCY = 4 + ADD_STAGES;  // from an address to the sum; the fourth cycle selects a bank's word
    typedef word_t [TILE_BLOCKS-1:0][RESULT_WORDS-1:0] column_t;  // results of a row and column, laid out as in DDR

    function automatic logic [ADDRESS_BITS-1:0] address_of(logic half, number_t row, number_t column);
        return ADDRESS_BITS'((half ? BANK_ROWS * CHUNK : 0) + address_product(CHUNK, row) + column);
    endfunction

    // --- fill -----------------------------------------------------------------------------------------------------
    logic [1:0] full;
    logic half, last_group, last_column, fill_done;
    number_t x, group;
    logic fill;
    assign fill = chunk_valid && !full[half] && result_valid;
    assign result_ready = fill;
    assign last_group = (group + 1) * SAVE_ROWS >= chunk.rows;
    assign last_column = x + 1 == chunk.columns;
    assign fill_done = fill && last_group && last_column;
    assign chunk_ready = fill_done;

    // LANES results are one word, or RESULT_WORDS words if they are written as int16, the lowest bits first. If a
    // channel tile begins within a block, the first half of that block belongs to the tile before.
    column_t [SAVE_ROWS-1:0] columns;
    logic [SAVE_ROWS-1:0][TILE_BLOCKS*LANES-1:0][RESULT_BITS-1:0] lane_results;
    always_comb begin
        columns = '0;
        for (int r = 0; r < SAVE_ROWS; r++) begin
            lane_results[r] = (TILE_BLOCKS * LANES * RESULT_BITS)'(result[r]);
            if (HALF_BLOCKS && chunk.odd) lane_results[r] = lane_results[r] << (LANES / 2 * RESULT_BITS);
            for (int block = 0; block < TILE_BLOCKS; block++) begin
                if (pass.value_words == 1) begin
                    for (int lane = 0; lane < LANES; lane++)
                        columns[r][block][0][lane*VALUE_BITS+:VALUE_BITS]
                            = lane_results[r][block*LANES+lane][VALUE_BITS-1:0];
                end else begin
                    columns[r][block] = lane_results[r][block*LANES+:LANES];
                end
            end
        end
    end

    // --- empty ----------------------------------------------------------------------------------------------------
    // verilator lint_off UNUSEDSIGNAL
    chunk_t [1:0] chunks;
    // verilator lint_on UNUSEDSIGNAL
    logic out_half;
    number_t row, block, column, word, block_offset, rows_per_cycle;
    logic to_buffer, has_residual_add, output_ready, drain, last_word, ends_row, ends_block, drain_done;
    logic [SAVE_PORTS-1:0] room;
    // verilator lint_off UNUSEDSIGNAL
    addition_t addition;
    // verilator lint_on UNUSEDSIGNAL
    assign addition = addition_of(pass);
    assign has_residual_add = ADDED_MAPS > 0 && (addition.from_ddr || addition.from_chip);
    assign to_buffer = MAP_DEPTH > 0 && pass.out_buffer != 0;
    assign rows_per_cycle = has_residual_add ? 1 : to_buffer ? ROW_BANKS : MAP_PORTS;
    assign output_ready = full[out_half] && (to_buffer || (&room));
    assign added_ready = output_ready && addition.from_ddr;
    assign drain = output_ready && (added_valid || !addition.from_ddr);
    assign last_word = word == pass.value_words - 1;
    assign ends_row = last_word && column == chunks[out_half].columns - 1;
    assign ends_block = ends_row && block == chunks[out_half].blocks - 1;
    assign drain_done = drain && ends_block && row + rows_per_cycle >= chunks[out_half].rows;

    column_t [ROW_BANKS-1:0] read;
    for (genvar bank = 0; bank < ROW_BANKS; bank++) begin : banks
        number_t fill_row, drain_row, row_in_bank;
        assign fill_row = group * SAVE_ROWS + bank % SAVE_ROWS;
        assign row_in_bank = row / ROW_BANKS + (bank < row % ROW_BANKS ? 1 : 0);
        assign drain_row = minimum(row_in_bank, BANK_ROWS - 1);
        sdp_ram #(.WIDTH($bits(column_t)), .DEPTH(DEPTH), .STYLE(ARRANGED_MEMORY)) rows (
            .clk,
            .write(fill && fill_row % ROW_BANKS == bank && fill_row < chunk.rows),
            .write_address(address_of(half, fill_row / ROW_BANKS, x)),
            .write_data(columns[bank%SAVE_ROWS]),
            .read(drain),
            .read_address(address_of(out_half, drain_row, column)),
            .read_data(read[bank]));
    end

    logic [MAP_PORTS-1:0] s1_valid;
    number_t s1_first, s1_block, s1_word;
    logic [1:0] s1_halves;
    // The halves of a word that belong to the tile: the halves of a block, which are whole words if a block has
    // several.
    logic [1:0] tile_halves, halves;
    logic word_half;
    assign tile_halves = !HALF_BLOCKS ? 2'b11
        : chunks[out_half].odd ? {1'b1, block != 0} : {block != TILE_BLOCKS - 1, 1'b1};
    assign word_half = word >= RESULT_WORDS / 2;
    assign halves = pass.value_words == 1 ? tile_halves : {2{tile_halves[word_half]}};
    // The word of each bank is selected once, not in every bank of a map buffer again.
    word_t [ROW_BANKS-1:0] output_words;
    always_comb for (int bank = 0; bank < ROW_BANKS; bank++) output_words[bank] = read[bank][s1_block][s1_word];
    for (genvar port = 0; port < MAP_PORTS; port++) begin : ports
        number_t bank;
        assign bank = (s1_first + port) % ROW_BANKS;
        fifo #(.WIDTH(WORD_BITS + 2), .DEPTH(LATENCY + 4), .SLACK(LATENCY)) saved (
            .clk, .reset, .in_valid(s1_valid[port]), .in_ready(room[port]),
            .in_data({s1_halves, output_words[bank]}), .out_valid(words_valid[port]),
            .out_ready(words_ready[port]), .out_data({words_halves[port], words[port]}));
    end

    // Output to a map buffer: for each bank, the row of the chunk that belongs to it, and the address of its word. The
    // sum of a residual add replaces the word of the residual map, or is written to another place of the same buffer.
    number_t unwrapped_bank, first_bank, buffer_base, buffer_row_pitch, piece, s1_row, s1_rows, s1_bank, s1_piece;
    number_t [1:0] places;  // address of each chunk's first word in its bank
    logic s1_buffer_write;
    assign buffer_base = ADDED_MAPS > 0 && !to_buffer ? addition.base : pass.out_base;
    assign buffer_row_pitch = ADDED_MAPS > 0 && !to_buffer ? addition.row_pitch : pass.out_row_pitch;
    assign unwrapped_bank = chunks[out_half].bank + row;
    assign first_bank = bank_of(unwrapped_bank);
    assign piece = places[out_half] + block_offset + column + lap_offset(unwrapped_bank, buffer_row_pitch);

    logic sum_valid;
    number_t sum_bank, sum_piece, to_bank, to_piece;
    word_t sum;
    assign to_bank = has_residual_add ? sum_bank : s1_bank;
    assign to_piece = has_residual_add ? sum_piece : s1_piece;
    always_ff @(posedge clk) begin
        for (int bank = 0; bank < ROWS; bank++) begin
            automatic logic wraps = bank < to_bank;
            automatic number_t next = bank - to_bank + (wraps ? ROWS : 0);
            automatic logic bank_write = s1_buffer_write && next < ROW_BANKS && s1_row + next < s1_rows;
            buffer_write[bank] <= (has_residual_add ? sum_valid && to_buffer && next == 0 : bank_write) && !reset;
            buffer_write_address[bank] <= to_piece + (wraps ? buffer_row_pitch : 0) - (bank < pass.out_turn ? buffer_row_pitch : 0);
            buffer_write_words[bank] <= has_residual_add ? sum : output_words[(s1_first + next) % ROW_BANKS];
        end
        buffer_write_halves <= s1_halves;
        s1_buffer_write <= drain && to_buffer && !has_residual_add && !reset;
        s1_row <= row;
        s1_rows <= chunks[out_half].rows;
        s1_bank <= first_bank;
        s1_piece <= piece;
    end

    // Residual adds of the words that are read from the buffer. The address of each sum is delayed with it.
    logic sums_done;
    if (ADDED_MAPS == 0) begin : no_residual
        assign buffer_read_address = '0;
        assign {sum_valid, sum_bank, sum_piece, sum} = '0;
        assign sums_done = 1'b1;
    end else begin : sums
        logic [SUM_LATENCY-1:0] valid;
        number_t s3_bank, residual_offset;  // words from the sum's to the residual map's address
        word_t s3_added, s4_other, s4_result;
        delay #(.WIDTH(WORD_BITS), .CYCLES(3)) others (.clk, .in_data(added), .out_data(s3_added));
        delay #(.WIDTH(WORD_BITS), .CYCLES(3)) results (
            .clk, .in_data(output_words[s1_first%ROW_BANKS]), .out_data(s4_result));
        delay #(.WIDTH(32), .CYCLES(2)) banks_read (.clk, .in_data(s1_bank), .out_data(s3_bank));
        delay #(.WIDTH(64), .CYCLES(SUM_LATENCY - 1)) places (
            .clk, .in_data({s1_bank, s1_piece}), .out_data({sum_bank, sum_piece}));
        always_ff @(posedge clk) begin
            valid <= reset ? '0 : {valid[SUM_LATENCY-2:0], drain && has_residual_add};
            // Only the word of the row's own bank is used.
            residual_offset <= to_buffer ? addition.base - pass.out_base : 0;
            for (int bank = 0; bank < ROWS; bank++)
                buffer_read_address[bank] <= s1_piece + residual_offset - (bank < pass.out_turn ? buffer_row_pitch : 0);
            s4_other <= addition.from_ddr ? s3_added : buffer_read_words[s3_bank];
        end
        add_words adder (.clk, .by(addition), .result(s4_result), .other(s4_other), .sum);
        assign sum_valid = valid[SUM_LATENCY-1];
        fifo #(.WIDTH(WORD_BITS), .DEPTH(SUM_LATENCY + 4), .SLACK(SUM_LATENCY)) saved (
            .clk, .reset, .in_valid(sum_valid && !to_buffer), .in_ready(room[MAP_PORTS]), .in_data(sum),
            .out_valid(words_valid[MAP_PORTS]), .out_ready(words_ready[MAP_PORTS]), .out_data(words[MAP_PORTS]));
        assign words_halves[MAP_PORTS] = 2'b11;
        assign sums_done = valid == '0;
    end

    assign done = full == '0 && s1_valid == '0 && words_valid == '0 && !s1_buffer_write && sums_done && buffer_write == '0 && !chunk_valid;

    always_ff @(posedge clk) begin
        for (int port = 0; port < MAP_PORTS; port++)
            s1_valid[port] <= drain && !to_buffer && !has_residual_add && row + port < chunks[out_half].rows && !reset;
        s1_first <= row % ROW_BANKS;
        s1_block <= block;
        s1_word <= word;
        s1_halves <= halves;
        if (reset) begin
            full <= '0;
            {half, out_half} <= '0;
            {x, group, row, block, column, word, block_offset} <= '0;
        end else begin
            if (fill) begin
                group <= last_group ? 0 : group + 1;
                if (last_group) x <= last_column ? 0 : x + 1;
            end
            if (fill_done) begin
                full[half] <= 1'b1;
                chunks[half] <= chunk;
                places[half] <= buffer_base + chunk.offset + chunk.lap;
                half <= !half;
            end
            if (drain) begin
                word <= last_word ? 0 : word + 1;
                if (last_word) column <= ends_row ? 0 : column + 1;
                if (ends_row) begin
                    block <= ends_block ? 0 : block + 1;
                    block_offset <= ends_block ? 0 : block_offset + pass.out_block_pitch;
                end
                if (ends_block) row <= drain_done ? 0 : row + rows_per_cycle;
            end
            if (drain_done) begin
                full[out_half] <= 1'b0;
                out_half <= !out_half;
            end
        end
    end
endmodule

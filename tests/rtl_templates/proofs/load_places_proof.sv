// Bound into load, whose rows arrive from ports, or all from a map buffer if the array has map buffers. The proof
// tracks any one word of a row that the pass reads. The word is taken once: from the port of its row stride, in the
// order of the requests of read_rows, or from the bank and address that the pass gives for the map. From then on it is
// stored in the row buffer, at the place of its row stride, row and word. No other word is stored there until the last
// tile that needs the word has been fed. Each step that reads the word finds it in the array row of the word's row,
// after it was stored.
module load_places_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input pass_t pass,
    input word_t [MAP_PORTS-1:0] rows,
    // inside
    input logic idle,
    input logic begins,
    input logic runs,
    input logic is_first,
    input logic is_tile,
    input logic is_between,
    input logic loading,
    input logic group_pending,
    input logic next_group_pending,
    input number_t tile,
    input number_t round,
    input number_t end_stride,
    input number_t start_slot,
    input number_t start_row,
    input number_t rows_to_next_group,
    input number_t rows_to_group_after,
    input number_t group_rows,
    input number_t tile_rows,
    input number_t tile_words,
    input number_t map_end_now,
    input number_t rewind_rows,
    input number_t excess,
    input logic returns,
    input logic follows,
    input number_t load_stride,
    input number_t load_row,
    input number_t load_slot,
    input number_t load_bank,
    input number_t load_offset,
    input number_t load_lap,
    input number_t load_piece,
    input number_t load_place,
    input countdown_t load_columns,
    input number_t [ROWS-1:0] buffer_read_address,
    input word_t [ROWS-1:0] buffer_read_words,
    input word_t [ROWS-1:0] stored_words,
    input logic turned_by_one,
    input logic lower,
    input logic early_lower,
    input logic store_lower,
    input countdown_t load_words,
    input countdown_t load_phases,
    input logic [ROWS-1:0] early_store,
    input logic [ROWS-1:0] store,
    input logic [ROWS-1:0][$clog2(ROW_DEPTH)-1:0] early_store_address,
    input logic [ROWS-1:0][$clog2(ROW_DEPTH)-1:0] store_address,
    input word_t [ROWS-1:0] early_words,
    input word_t [ROWS-1:0] port_words,
    input number_t remaining_feeds,
    input logic feeding,
    input number_t ky,
    input number_t feed_bank,
    input number_t feed_slot,
    input number_t phase_offset,
    input number_t low_word,
    input number_t block,
    input number_t block_offset,
    input number_t tile_block,
    input number_t tile_block_offset,
    input number_t start_block,
    input number_t start_block_offset,
    input countdown_t kernel_rows,
    input countdown_t kernel_phases,
    // stages of a step
    input logic s1_valid,
    input logic s1_block,
    input row_t s1_row,
    input number_t s1_slot_address,
    input number_t s1_next_slot_address,
    input logic s1_next,
    input logic [$clog2(ROWS)-1:0] s1_bank,
    input logic s2_valid,
    input logic [ROWS-1:0] s2_exists,
    input logic [$clog2(ROWS)-1:0] s2_bank,
    input logic s2_slot_odd,
    input logic s2_next_slot_odd,
    input word_t [ROWS-1:0] even,
    input word_t [ROWS-1:0] odd,
    input logic s3_valid,
    input logic [ROWS-1:0] s3_exists,
    input logic [1:0] s3_bank,
    input logic [ROWS-1:0] s3_odd,
    input word_t [ROWS-1:0][1:0] s3_words,
    input word_t [ROWS-1:0][1:0] s4_words,
    input logic s4_valid,
    input logic [ROWS-1:0] s4_odd,
    input logic [ROWS-1:0] s4_exists,
    input logic ends_row,
    input word_t even_0[ROW_DEPTH/2],
    input word_t odd_0[ROW_DEPTH/2],
    input word_t even_1[ROW_DEPTH/2],
    input word_t odd_1[ROW_DEPTH/2],
    input word_t even_2[ROW_DEPTH/2],
    input word_t odd_2[ROW_DEPTH/2]
);
    // Small numbers keep the products small.
    localparam number_t TILES = 4, MOST = MAP_DEPTH > 0 || ROWS > 2 ? 3 : 4, LAPS = 9, STRIDES = 16;
    localparam bit ON_CHIP = MAP_DEPTH > 0;
    logic began = 1'b0, running, started, resident;
    pass_t was_pass;
    assign running = !idle;
    assign resident = pass.inputs_resident != 0;

    number_t strides;  // row strides that arrive together
    assign strides = !ON_CHIP ? MAP_PORTS : pass.stride == 2 && ROWS % 2 == 0 ? ROWS / 2 : ROWS;
    number_t map_end, last_tile;
    assign map_end = pass.pad_top + pass.in_height;
    assign last_tile = pass.row_tiles - 1;
    function automatic number_t end_of(number_t of_tile);  // the first row stride that a tile does not need
        end_of = (of_tile + 1) * ROWS + pass.ahead;
    endfunction

    // The bank of padded row 0 in a map buffer, and of row stride 0 in the row buffer.
    number_t zero_bank, rotation;
    assign zero_bank = ROWS * pass.in_lap + pass.in_turn - pass.pad_top;
    assign rotation = pass.stride == 1 ? zero_bank : 0;

    // The slots of a bank are used in turn, one for each lap of ROWS row strides.
    number_t slot[LAPS];
    always_comb begin
        slot[0] = 0;
        for (int lap = 1; lap < LAPS; lap++) slot[lap] = slot[lap-1] == pass.last_slot ? 0 : slot[lap-1] + pass.slot_words;
    end

    // Any one word: its row stride, its row in the stride, its place in the row.
    // any: undriven, so that the solver chooses it
    number_t any_stride, any_phase, any_word, stride, phase, word, row, bank, place;
    logic exists, in_group, at_word, passed, comes, live;
    logic [2:0] have;  // the word arrives, is being stored, is stored
    word_t coming_word, value;
    assign row = stride * pass.stride + phase;
    assign exists = phase < pass.phases && word < pass.row_words && row >= pass.pad_top && row < map_end;
    assign bank = (stride + rotation) % ROWS;
    assign place = slot[(stride+rotation)/ROWS] + phase * pass.row_words + word;
    // Its place in a map buffer: consecutive rows are in consecutive banks, and then the next lap begins. The pass
    // gives the distance of the pieces of a row. The words of a piece are consecutive.
    number_t any_piece, any_column, piece, column, map_bank, map_place;
    logic in_piece;
    assign in_piece = word == few(piece, pass.burst_words) + column && column < pass.burst_words;
    assign map_bank = (row + zero_bank) % ROWS;
    assign map_place = pass.in_base + laps_of((row + zero_bank) / ROWS - pass.in_lap - number_t'(map_bank < pass.in_turn))
        + few(piece, pass.in_block_pitch) + column;
    function automatic number_t few(number_t count, number_t of);  // count is at most 3
        few = (count[0] ? of : 0) + (count[1] ? 2 * of : 0);
    endfunction
    function automatic number_t laps_of(number_t laps);  // words, from 4 laps before the first one to 11 after it
        automatic number_t words = -4 * pass.in_row_pitch;
        laps_of = words;
        for (int k = -3; k < 12; k++) begin
            words = words + pass.in_row_pitch;
            if (laps == k) laps_of = words;
        end
    endfunction
    assign live = running && (resident || stride >= (is_between ? tile + 1 : tile) * ROWS);

    // The position of loading: group, phase, word.
    number_t load_phase, load_word, piece_loaded, column_loaded, returned;  // returned: row strides that loading went back
    assign in_group = load_stride <= stride && stride < load_stride + strides;
    assign at_word = in_group && load_phase == phase && load_word == word;
    assign passed = stride < end_stride && (stride < load_stride
        || (in_group && (phase < load_phase || (phase == load_phase && word < load_word))));
    assign comes = loading && at_word && exists && stride < end_stride;

    // The position of feeding: the row stride of the tile, and the row of the stride.
    number_t fed_stride, fed_phase, fed_word;
    assign fed_word = block * pass.block_words + low_word;
    logic [ROWS-1:0] row_is_fed;
    logic [3:0][ROWS-1:0] low, next, in_map;  // the word is in a stage, as the lower or the upper of two words
    word_t arriving_word, given;
    assign given = ON_CHIP ? buffer_read_words[map_bank] : arriving_word;
    logic block_exists;
    assign block_exists = block < pass.in_blocks;
    always_comb
        for (int m = 0; m < ROWS; m++)
            row_is_fed[m] = feeding && block_exists && stride == tile * ROWS + fed_stride + m && phase == fed_phase && exists;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        started <= start && !reset;
        was_pass <= pass;
        {stride, phase, word} <= began ? {stride, phase, word} : {any_stride, any_phase, any_word};
        have <= reset || start ? '0 : {have[1] || have[2], have[0], comes};
        coming_word <= rows[stride%MAP_PORTS];
        {piece, column} <= began ? {piece, column} : {any_piece, any_column};
        if (have[1]) value <= given;
        arriving_word <= coming_word;
        returned <= excess;
        if (start) {load_phase, load_word, piece_loaded, column_loaded} <= '0;
        else if (loading) begin
            column_loaded <= load_columns.last ? 0 : column_loaded + 1;
            if (load_columns.last) piece_loaded <= load_words.last ? 0 : piece_loaded + 1;
            load_word <= load_words.last ? 0 : load_word + 1;
            if (load_words.last) load_phase <= load_phases.last ? 0 : load_phase + 1;
        end
        if (begins) {fed_stride, fed_phase} <= '0;
        else if (feeding && ends_row) begin
            if (kernel_rows.last) {fed_stride, fed_phase} <= '0;
            else if (fed_phase == pass.stride - 1) begin
                fed_phase <= 0;
                fed_stride <= fed_stride + 1;
            end else fed_phase <= fed_phase + 1;
        end
        for (int m = 0; m < ROWS; m++) begin
            low[0][m] <= row_is_fed[m] && low_word >= 0 && fed_word == word && !reset;
            next[0][m] <= row_is_fed[m] && low_word < pass.block_words - 1 && fed_word + 1 == word && !reset;
            in_map[0][m] <= block_exists && (tile * ROWS + fed_stride + m) * pass.stride + fed_phase >= pass.pad_top
                && (tile * ROWS + fed_stride + m) * pass.stride + fed_phase < map_end;
        end
        low[3:1] <= reset ? '0 : low[2:0];
        next[3:1] <= reset ? '0 : next[2:0];
        in_map[3:1] <= in_map[2:0];
    end

    // The rules that the scheduler keeps.
    number_t slots, span;
    assign slots = pass.last_slot == 0 ? 1 : pass.last_slot == pass.slot_words ? 2
        : pass.last_slot == 2 * pass.slot_words ? 3 : 4;
    assign span = (ROWS - 1 + pass.ahead) / ROWS + 1;
    always_comb begin
        if (!began) assume (reset);
        if (began && (running || started || start)) assume (pass == was_pass);
        if (began && running) assume (!start);
        assume (any_stride >= 0 && any_stride < STRIDES && any_phase >= 0 && any_phase < MOST);
        assume (any_word >= 0 && any_word < ROW_DEPTH);
        assume (any_piece >= 0 && any_piece < MOST && any_column >= 0 && any_column < ROW_DEPTH);
        assume (pass.row_tiles > 0 && pass.row_tiles < TILES && pass.channel_tiles > 0 && pass.channel_tiles < MOST);
        assume (pass.kernel_height > 0 && pass.kernel_height <= MOST && pass.stride > 0 && pass.stride < 3);
        assume (pass.phases == minimum(pass.stride, pass.kernel_height));
        assume (pass.ahead >= 0 && pass.ahead <= 2 && pass.ahead == (pass.kernel_height - 1) / pass.stride);
        assume (pass.pad_top >= 0 && pass.pad_top < pass.kernel_height && pass.in_height > 0 && pass.in_height < 16);
        // With stride 1 a map begins in any bank. With stride 2 padded row 0 is in bank 0, or also in bank 1 for
        // kernels of one row.
        assume (pass.in_lap >= 0 && pass.in_lap < MOST && pass.in_turn >= 0 && pass.in_turn < ROWS);
        assume (zero_bank >= 0 && zero_bank < (!ON_CHIP ? 1 : pass.stride == 1 ? ROWS : pass.kernel_height == 1 ? 2 : 1));
        if (ON_CHIP) assume (pass.in_buffer != 0);
        if (pass.bursts == 1) assume (pass.burst_words == pass.row_words);
        else assume (pass.bursts == pass.in_blocks && pass.burst_words == pass.block_words);
`ifdef STRIDE
        assume (pass.stride == `STRIDE);
`endif
        assume (pass.block_words > 0 && pass.block_words < MOST && pass.in_blocks > 0 && pass.in_blocks < MOST);
        assume (pass.tile_blocks > 0 && pass.tile_blocks < MOST);
        assume (pass.row_words == pass.in_blocks * pass.block_words && pass.row_words <= ROW_DEPTH);
        assume (pass.slot_words == pass.phases * pass.row_words && pass.slot_words <= ROW_DEPTH);
        assume (pass.last_slot == (slots - 1) * pass.slot_words && pass.last_slot + pass.slot_words <= ROW_DEPTH);
        assume (slots >= (resident ? last_tile + span : span + number_t'(pass.overlap != 0)));
        assume (block >= 0 && tile_block >= 0 && start_block >= 0);  // 32-bit numbers do not overflow
    end

    function automatic logic counts(countdown_t count, number_t turns, number_t turn);
        counts = count.remaining == turns - 1 - turn && count.last == (turn == turns - 1) && turn >= 0 && turn < turns
            && count.initial_remaining == turns - 1 && count.initial_last == (turns == 1);
    endfunction
    function automatic logic complete(number_t end_of_strides);  // all map rows before it are loaded
        complete = load_stride >= end_of_strides || load_stride * pass.stride >= map_end;
    endfunction
    logic more, loads, comes_there, stored_there;
    assign comes_there = early_store[bank] && number_t'(early_store_address[bank]) == place;
    assign stored_there = store[bank] && number_t'(store_address[bank]) == place;
    word_t stored;
    assign more = round == 0 && tile < last_tile;
    assign loads = is_first || is_between || (more && pass.overlap != 0);
    always_comb begin
        stored = place[0] ? odd_0[place>>>1] : even_0[place>>>1];
        if (bank == 1) stored = place[0] ? odd_1[place>>>1] : even_1[place>>>1];
        if (bank == 2) stored = place[0] ? odd_2[place>>>1] : even_2[place>>>1];
    end

    always_comb if (began) begin
        assert (piece >= 0 && piece < MOST && column >= 0 && column < ROW_DEPTH);
        assert (stride >= 0 && stride < STRIDES && phase >= 0 && phase < MOST && word >= 0 && word < ROW_DEPTH);
        assert (!loading || runs);
        assert (!feeding || (runs && is_tile));
        if (runs && !is_tile) assert (remaining_feeds == 0);
        if (running) begin
            // The state of the module.
            assert (is_first || is_tile || is_between);
            assert (tile >= 0 && tile <= last_tile && round >= 0 && round < pass.channel_tiles && (round == 0 || resident));
            if (is_first) assert (tile == 0 && round == 0);
            if (is_between) assert (more && pass.overlap == 0);
            if (is_first || (begins && !is_between)) assert (end_stride == end_of(round == 0 ? tile : last_tile));
            else assert (end_stride == end_of(more ? tile + 1 : round == 0 ? tile : last_tile));
            assert (load_stride >= 0 && load_stride < end_stride + strides && (!begins || load_stride <= end_stride));
            assert (counts(load_words, pass.row_words, load_word) && counts(load_phases, pass.phases, load_phase));
            assert (load_offset == load_phase * pass.row_words + load_word);
            assert (rows_to_next_group == group_rows - pass.phases + 1 && rows_to_group_after == rows_to_next_group + group_rows);
            assert (group_rows == strides * pass.stride && tile_rows == ROWS * pass.stride && map_end_now == map_end);
            assert (tile_words == pass.tile_blocks * pass.block_words);
            if (returns || follows) assert (load_row == (load_stride + (follows ? returned : 0)) * pass.stride);
            if (follows) assert (rewind_rows == returned * pass.stride);
            if (begins || runs) assert (load_row == load_stride * pass.stride + load_phase);
            assert (load_bank == (load_stride + rotation) % ROWS && load_slot == slot[(load_stride+rotation)/ROWS]);
            if (!runs || !group_pending) assert (load_phase == 0 && load_word == 0);
            if (ON_CHIP) begin
                assert (counts(load_columns, pass.burst_words, column_loaded));
                assert (piece_loaded >= 0 && piece_loaded < pass.bursts);
                assert (load_word == few(piece_loaded, pass.burst_words) + column_loaded);
                assert (load_lap == pass.in_base + laps_of((load_stride + rotation) / ROWS * pass.stride - pass.in_lap));
                assert (load_piece == load_lap + few(piece_loaded, pass.in_block_pitch));
                assert (load_place == load_piece + column_loaded);
                assert (pass.stride == 1 || turned_by_one == zero_bank[0]);
                if (begins || runs) assert (pass.stride == 1 || lower == (load_phase[0] != zero_bank[0]));
            end
            if (runs) begin
                assert (group_pending == (loads && !complete(end_stride)));
                assert (next_group_pending == (load_stride + strides < end_stride && (load_stride + strides) * pass.stride < map_end));
            end
            if (is_tile) assert (complete(end_of(round == 0 ? tile : last_tile)));
            if (is_between) assert (complete(end_of(tile)));
            if ((returns || follows) && loads) assert (complete(end_stride));
            assert (start_slot == slot[tile] && start_row == tile * ROWS * pass.stride);
            if (runs) begin
                assert (ky == fed_stride * pass.stride + fed_phase && fed_stride >= 0 && fed_stride <= pass.ahead);
                assert (counts(kernel_rows, pass.kernel_height, ky) && counts(kernel_phases, pass.stride, fed_phase));
                assert (phase_offset == fed_phase * pass.row_words);
                assert (feed_bank == (fed_stride + rotation) % ROWS && feed_slot == slot[tile+(fed_stride+rotation)/ROWS]);
            end
            assert (start_block_offset == start_block * pass.block_words);
            if (runs) assert (block_offset == block * pass.block_words && tile_block_offset == tile_block * pass.block_words);
            // The word is taken once, in order, and is stored from then on.
            assert ((have != '0) == (exists && passed));
            if (comes) assert (have == '0);
            for (int m = 0; m < ROWS; m++)
                if (row_is_fed[m] && (low_word >= 0 ? fed_word <= word : fed_word < word) && word <= fed_word + 1
                    && word < (block + 1) * pass.block_words) assert (have[2] && live);
        end else assert (!feeding && !loading);
        if (have[2] && live) assert (stored == value);
        assert ($onehot0(have) && (!have[0] || runs || returns) && (!have[1] || runs || returns || follows));
        if (have[0] || have[1]) assert (loads && low == '0 && next == '0);
        if ({low[2:0], next[2:0]} != '0 || ({low, next} != '0 && !begins)) assert (have[2]);
        if (follows || idle) assert ({low[0], next[0]} == '0);
        if (idle) assert ({low[1], next[1]} == '0);
        if (begins) assert (early_store == '0);
        if (have[0] && !ON_CHIP) assert (early_words[bank] == coming_word);
        if (have[0] && ON_CHIP && in_piece) assert (buffer_read_address[map_bank] == map_place);
        if (have[0] && ON_CHIP && pass.stride == 2) assert (early_lower == (phase[0] != zero_bank[0]));
        if (have[1] && ON_CHIP && pass.stride == 2) assert (store_lower == (phase[0] != zero_bank[0]));
        if (have[1]) assert (stored_words[bank] == given);
        if (running && live) begin
            if (have[0]) assert (comes_there);
            if (have[1]) assert (stored_there && !comes_there);
            if (have[2]) assert (!stored_there && !comes_there);
        end
        // The word in the stages of a step.
        for (int m = 0; m < ROWS; m++) begin
            automatic number_t at = (m + number_t'(s1_bank)) % ROWS, from = at < number_t'(s1_bank) ? s1_next_slot_address : s1_slot_address;
            automatic number_t of_bank = (m + number_t'(s2_bank)) % ROWS, of_three = (m + number_t'(s3_bank)) % ROWS;
            automatic logic is_odd = of_bank < number_t'(s2_bank) ? s2_next_slot_odd : s2_slot_odd;
            if (low[0][m]) assert (have[2] && live && bank == at && place == from);
            if (next[0][m]) assert (have[2] && live && bank == at && place == from + 1 && s1_next);
            if (low[1][m]) assert ((is_odd ? odd[of_bank] : even[of_bank]) == value);
            if (next[1][m]) assert ((is_odd ? even[of_bank] : odd[of_bank]) == value);
            if (low[2][m]) assert (number_t'(s3_bank) < ROWS && s3_words[of_three][s3_odd[m]] == value);
            if (next[2][m]) assert (number_t'(s3_bank) < ROWS && s3_words[of_three][!s3_odd[m]] == value);
            if (low[3][m]) assert (s4_words[m][s4_odd[m]] == value);
            if (next[3][m]) assert (s4_words[m][!s4_odd[m]] == value);
            // True if the row is in the map.
            if (s1_valid) assert (in_map[0][m] == (s1_block && s1_row + row_t'(m * pass.stride) >= 0
                && s1_row + row_t'(m * pass.stride) < row_t'(pass.in_height)));
            if (s2_valid) assert (s2_exists[m] == in_map[1][m]);
            if (s3_valid) assert (s3_exists[m] == in_map[2][m]);
            if (s4_valid) assert (s4_exists[m] == in_map[3][m]);
        end
    end
endmodule
bind load load_places_proof proof (
    .*, .stored_words(store_words), .turned_by_one(extra_rotation), .idle(state == IDLE), .begins(state == BEGIN), .runs(state == RUN), .returns(state == REWIND), .follows(state == NEXT),
    .map_end_now(map_end), .is_first(phase == FIRST),
    .is_tile(phase == TILE), .is_between(phase == BETWEEN), .even_0(banks[0].even_words.memory),
    .odd_0(banks[0].odd_words.memory), .even_1(banks[1].even_words.memory), .odd_1(banks[1].odd_words.memory),
    .even_2(banks[ROWS-1].even_words.memory), .odd_2(banks[ROWS-1].odd_words.memory));

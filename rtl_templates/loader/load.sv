// Owns the row buffer. It feeds one step per cycle to the array, one word per array row. Meanwhile the rows that only
// the next tile needs arrive from the ports or from a map buffer. They are stored in slots whose rows are no longer
// needed.
//
// A *row stride* is the ``stride`` rows from one output row's window to the next one's. Row stride q is stored in bank
// (q + feed_first_bank) mod ROWS, so that the ROWS rows of a step are always in different banks. In its bank it takes a
// *slot*; the slots of a bank are used in turn. A bank has two halves, for words of even and of odd address, so that
// two neighbouring words can be read per cycle: a window of pixels may begin within a word. Row numbers include the
// padding above the map ("padded rows"). Row strides that arrive together are a *group*: one per port, or the row
// strides that move together from a map buffer.
module load
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    output logic done,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    input logic [MAP_PORTS-1:0] rows_valid,
    output logic [MAP_PORTS-1:0] rows_ready,
    input word_t [MAP_PORTS-1:0] rows,
    output number_t [ROWS-1:0] buffer_read_address,
    input word_t [ROWS-1:0] buffer_read_words,
    output logic activations_valid,
    input logic activations_ready,
    output word_t [ROWS-1:0][POSITIONS-1:0] activations
);
    localparam int HALF_DEPTH = ROW_DEPTH / 2;
    localparam int ADDRESS_BITS = HALF_DEPTH > 1 ? $clog2(HALF_DEPTH) : 1;
    localparam int PIXEL_SHIFT = $clog2(WORD_PIXELS);
    localparam int BANK_BITS = $clog2(ROWS);
    localparam int SHIFT_BITS = $clog2(2 * WORD_PIXELS);  // bits of a pixel's place within two words
    localparam int LATENCY = 5;  // from a feed to its activations in the FIFO

    typedef enum logic [2:0] {IDLE, BEGIN, RUN, REWIND, NEXT} state_t;
    typedef enum logic [1:0] {FIRST, TILE, BETWEEN} phase_t;
    state_t state;
    phase_t phase;

    // --- constants of a pass ------------------------------------------------------------------------------------
    row_t [ROWS-1:0] stride_rows;  // rows from a row stride to the r-th one after it
    // Size of a group in row strides and in rows; rows from its last row that is read to the next group and to the one
    // after.
    number_t group, group_rows, rows_to_next_group, rows_to_group_after;
    number_t map_end;  // the first padded row below the map
    logic from_buffer;
    assign from_buffer = MAP_DEPTH > 0 && pass.in_buffer != 0;
    number_t tile_rows, tile_words;  // rows of the map from one tile to the next; words of a channel tile's blocks
    // Rows of padding take places in the row buffer. With stride 1, loading starts below the padding above the map.
    number_t first_stride, load_first_bank, first_slot, first_lap;
    number_t zero_bank;  // the bank of padded row 0 in a map buffer
    assign zero_bank = address_product(ROWS, pass.in_lap) + pass.in_turn - pass.pad_top;
    number_t feed_first_bank;  // the bank of row stride 0; non-zero only if a map buffer is rotated
    // A *lap* of a map buffer is ROWS consecutive rows, one per bank.
    // row_pairs: rows are read in pairs (stride 2). extra_rotation: the banks are rotated one row further than the
    // padding above.
    // buffer_group, buffer_group_rows: row strides and rows that move per cycle.
    // lap_pitch: words from the lap of a row stride to the lap of the one ROWS strides below.
    // lap_offsets: words to the lap above, to the same lap, and to the first, second and third lap below.
    logic row_pairs, extra_rotation;
    number_t buffer_group, buffer_group_rows, lap_pitch;
    number_t [4:0] lap_offsets;
    assign row_pairs = MAP_STRIDE > 1 && pass.stride == 2;
    logic large_stride;  // the stride is above 2: at most MAX_STRIDED_ROWS row strides move per cycle
    assign large_stride = MAP_STRIDE > 2 && pass.stride > 2;
    number_t strided_rows, strided_group_rows;
    assign buffer_group = large_stride ? strided_rows : ROWS % 2 == 0 && row_pairs ? ROWS / 2 : ROWS;
    assign buffer_group_rows = large_stride ? strided_group_rows : ROWS % 2 == 1 && row_pairs ? 2 * ROWS : ROWS;
    assign group = from_buffer ? buffer_group : MAP_PORTS;
    number_t before_map;  // words of the laps of padding above, in the row buffer or in a map buffer
    // With stride 1, loading starts below the padding above. With a larger stride, the first lap may begin above the
    // map.
    assign first_slot = pass.stride == 1 ? before_map : 0;
    assign first_lap = pass.in_base - (pass.stride == 1 ? 0 : before_map);
    // These are registers: a pass is valid a cycle before its start.
    always_ff @(posedge clk) begin
        for (int r = 0; r < ROWS; r++) stride_rows[r] <= row_t'(address_product(pass.stride, r));
        tile_rows <= address_product(pass.stride, ROWS);
        tile_words <= address_product(pass.block_words, pass.tile_blocks);
        first_stride <= pass.stride == 1 ? pass.pad_top : 0;
        load_first_bank <= pass.stride == 1 ? pass.in_turn : 0;
        feed_first_bank <= pass.stride == 1 ? zero_bank : 0;
        before_map <= address_product(pass.stride == 1 ? pass.slot_words : pass.in_row_pitch, pass.in_lap);
        map_end <= pass.pad_top + pass.in_height;
        group_rows <= from_buffer ? buffer_group_rows : MAP_PORTS * pass.stride;
        rows_to_next_group <= (from_buffer ? buffer_group_rows : MAP_PORTS * pass.stride) - pass.phases + 1;
        rows_to_group_after <= 2 * (from_buffer ? buffer_group_rows : MAP_PORTS * pass.stride) - pass.phases + 1;
        // With stride 2, in_lap · ROWS + in_turn is pad_top or pad_top + 1.
        extra_rotation <= pass.pad_top[0] ^ pass.in_turn[0] ^ (ROWS % 2 == 1 && pass.in_lap[0]);
        lap_pitch <= row_pairs ? 2 * pass.in_row_pitch : pass.in_row_pitch;
        // The multiples are sums and shifts, so that synthesis uses no DSP.
        lap_offsets[0] <= -pass.in_row_pitch;
        lap_offsets[1] <= 0;
        lap_offsets[2] <= pass.in_row_pitch;
        lap_offsets[3] <= pass.in_row_pitch <<< 1;
        lap_offsets[4] <= (pass.in_row_pitch <<< 1) + pass.in_row_pitch;
    end

    // Return whether a row, counted from the map's first row, is in the map.
    function automatic logic row_exists(row_t row, row_t height);
        return row >= 0 && row < height;
    endfunction

    // --- tiles --------------------------------------------------------------------------------------------------
    number_t round, tile, end_stride;
    number_t start_slot, start_row, start_block, start_block_offset;
    number_t remaining_feeds;
    logic group_pending, next_group_pending;  // the phase loads another group, and one after that
    logic more_rows;  // the rows of a later tile are not loaded yet
    assign more_rows = round == 0 && tile + 1 < pass.row_tiles;

    // A phase loads row strides before phase_end. Rows of padding below the map are not loaded.
    logic loads;
    number_t phase_end;
    assign loads = phase == FIRST || phase == BETWEEN || (more_rows && pass.overlap != 0);
    assign phase_end = phase == TILE && more_rows ? end_stride + ROWS : end_stride;

    // --- load: the word that arrives next; the registers describe the group's first row stride -------------------
    number_t load_stride, load_row, load_slot, load_bank, load_offset;
    countdown_t load_words, load_phases;
    // Addresses in a map buffer: the start of load_stride's lap, of the piece of a row that arrives, and its word. The
    // word's address is accumulated ahead, so that only an offset of laps is added to it.
    number_t load_lap, load_piece, load_place, next_lap;
    countdown_t load_columns;
    logic [ROWS-1:0] row_valid;  // rows of the group that are in the map and before row stride end_stride
    logic [MAP_PORTS-1:0] port_needed;
    logic loading, wraps;
    number_t slot_address, next_slot_address, next_load_slot;

    assign next_load_slot = load_slot == pass.last_slot ? 0 : load_slot + pass.slot_words;
    assign wraps = load_bank > ROWS - 1 - group;  // the next group begins in a smaller bank
    assign slot_address = load_slot + load_offset;
    assign next_slot_address = next_load_slot + load_offset;
    row_t remaining_strides, map_row;
    assign remaining_strides = row_t'(end_stride - load_stride);
    assign map_row = row_t'(load_row - pass.pad_top);
    always_comb begin
        for (int r = 0; r < ROWS; r++)
            row_valid[r] = row_t'(r) < remaining_strides && r < group && row_exists(map_row + stride_rows[r], row_t'(pass.in_height));
        for (int port = 0; port < MAP_PORTS; port++)
            port_needed[port] = !from_buffer && row_valid[(port - load_stride) & (MAP_PORTS - 1)];
        loading = state == RUN && group_pending && (port_needed & ~rows_valid) == '0;
        rows_ready = port_needed & {MAP_PORTS{loading}};
    end

    assign next_lap = wraps ? load_lap + lap_pitch : load_lap;

    // Words are stored two cycles later; in the second cycle, a map buffer outputs its words.
    logic [ROWS-1:0] bank_valid, early_store, store;
    number_t [ROWS-1:0] group_row;
    logic [ROWS-1:0] lap_below;  // the row stride is one lap further down than the group's first one
    logic [ROWS-1:0][ADDRESS_BITS:0] early_store_address, store_address;
    word_t [ROWS-1:0] early_words, port_words, map_words, store_words;
    // With stride 2: whether the lower or the upper row of a pair of banks moves (see move_words).
    logic lower, early_lower, store_lower;
    assign lower = load_row[0] != extra_rotation;
    // With a stride above 2: the read addresses of the banks, and the words that the banks output.
    number_t [ROWS-1:0] strided_address;
    word_t [ROWS-1:0] strided_words;
    assign store_words = from_buffer ? (large_stride ? strided_words : map_words) : port_words;
    always_comb begin
        for (int bank = 0; bank < ROWS; bank++) begin
            lap_below[bank] = bank < load_bank;
            group_row[bank] = bank - load_bank + (lap_below[bank] ? ROWS : 0);
            bank_valid[bank] = row_valid[group_row[bank]];
        end
    end
    always_ff @(posedge clk) begin
        for (int bank = 0; bank < ROWS; bank++) begin
            early_store[bank] <= loading && bank_valid[bank];
            early_store_address[bank] <= (ADDRESS_BITS + 1)'(bank < load_bank ? next_slot_address : slot_address);
            early_words[bank] <= rows[(load_stride + group_row[bank]) & (MAP_PORTS - 1)];
        end
        store <= early_store;
        store_address <= early_store_address;
        port_words <= early_words;
        early_lower <= lower;
        store_lower <= early_lower;
    end

    // With stride 2, bank q of the row buffer takes rows 2q and 2q + 1, which are in banks 2q mod ROWS and 2q + 1 mod
    // ROWS of the map buffer. So bank b of the map buffer serves one of two banks q: the near one, and the far one,
    // whose row is ROWS rows, one lap, further down. If ROWS is odd, one of the two takes the upper rows and the other
    // the lower rows. If ROWS is even, both take rows of b's parity, and only one of them is in the group.
    for (genvar bank = 0; bank < ROWS; bank++) begin : move_words
        localparam bit ODD_ROWS = ROWS % 2 == 1, ODD = bank % 2 == 1;
        localparam int NEAR = ODD_ROWS && ODD ? (bank + ROWS) / 2 : bank / 2;
        localparam int FAR = !ODD_ROWS ? bank / 2 + ROWS / 2 : ODD ? bank / 2 : (bank + ROWS - 1) / 2;
        logic to_near, next, above;  // above: the bank's first row belongs to the lap before, because of the rotation
        logic [2:0] laps;  // index of lap_offsets
        assign to_near = ODD_ROWS ? !lower : bank_valid[NEAR];
        assign next = ODD_ROWS ? ODD == to_near : !to_near;
        assign laps = 3'(!above) + (row_pairs ? 3'({to_near ? lap_below[NEAR] : lap_below[FAR], next}) : 3'(lap_below[bank]));
        always_ff @(posedge clk) begin
            above <= bank < pass.in_turn;
            buffer_read_address[bank] <= large_stride ? strided_address[bank] : load_place + lap_offsets[laps];
        end
        assign map_words[bank] = !row_pairs ? buffer_read_words[bank] : store_lower ? buffer_read_words[(2 * bank + 1) % ROWS] : buffer_read_words[2 * bank % ROWS];
    end

    // If the last group went beyond end_stride, loading returns to it, because the next group starts there.
    number_t excess, rewind_bank, rewind_rows;
    assign excess = load_stride > end_stride ? load_stride - end_stride : 0;
    assign rewind_bank = load_bank - excess;

    // With a stride above 2, the rows of a group can be in any banks. For the row that arrives, the banks of the
    // group's row strides are computed in advance, and the word offset of each from the word of the first.
    if (MAP_STRIDE <= 2) begin : no_large_stride
        assign {strided_rows, strided_group_rows} = '0;
        assign strided_address = '0;
        assign strided_words = '0;
    end else begin : large_strides
        typedef logic [BANK_BITS-1:0] bank_t;
        typedef logic [BANK_BITS:0] banks_t;  // a sum of two banks
        // Distance of r row strides: in banks, in laps, in words of these laps, and in words of one lap more. Except
        // for the pitch, these are constants of the stride.
        bank_t [MAX_STRIDED_ROWS:0] banks;
        number_t [MAX_STRIDED_ROWS:0] laps, words, more_words;
        bank_t group_banks;  // the same distances for a whole group
        number_t group_words, more_group_words;
        logic [MAX_STRIDED_ROWS-1:0] row_moves;  // the row stride is one of those that move together
        always_ff @(posedge clk) begin
            for (int s = 3; s <= MAP_STRIDE; s++) begin
                if (pass.stride == s) begin
                    strided_rows <= MAX_STRIDED_ROWS;
                    strided_group_rows <= MAX_STRIDED_ROWS * s;
                    for (int r = MAX_STRIDED_ROWS - 1; r > 0; r--)
                        if (r * s % ROWS == 0) begin
                            strided_rows <= r;
                            strided_group_rows <= r * s;
                        end
                    for (int r = 0; r <= MAX_STRIDED_ROWS; r++) begin
                        banks[r] <= bank_t'(r * s % ROWS);
                        laps[r] <= r * s / ROWS;
                    end
                end
            end
            for (int r = 0; r <= MAX_STRIDED_ROWS; r++) begin
                words[r] <= address_product(pass.in_row_pitch, laps[r]);
                more_words[r] <= words[r] + pass.in_row_pitch;
            end
            for (int r = 0; r < MAX_STRIDED_ROWS; r++) row_moves[r] <= r < strided_rows;
            group_banks <= banks[strided_rows];
            group_words <= words[strided_rows];
            more_group_words <= more_words[strided_rows];
        end

        function automatic banks_t wrapped_bank(banks_t sum);
            return sum >= banks_t'(ROWS) ? sum - banks_t'(ROWS) : sum;
        endfunction

        // Bank and start of the lap: of the group's first row stride, and of its row that arrives.
        bank_t bank, row_bank;
        number_t lap, row_lap, piece, place;
        banks_t next_group_bank, next_row_bank, rewound_bank;
        bank_t next_bank;  // bank of the row that arrives in the next cycle
        number_t next_group_lap, next_row_lap;
        logic ends_row_load, ends_group_load;
        assign ends_row_load = loading && load_words.last;
        assign ends_group_load = ends_row_load && load_phases.last;
        assign next_group_bank = banks_t'(bank) + banks_t'(group_banks);
        assign next_group_lap = lap + (next_group_bank >= banks_t'(ROWS) ? more_group_words : group_words);
        assign next_row_bank = banks_t'(row_bank) + 1'b1;
        assign next_row_lap = row_lap + (next_row_bank == banks_t'(ROWS) ? pass.in_row_pitch : 0);
        assign next_bank = state != RUN ? bank : ends_group_load ? bank_t'(wrapped_bank(next_group_bank))
            : ends_row_load ? bank_t'(wrapped_bank(next_row_bank)) : row_bank;

        bank_t [MAX_STRIDED_ROWS-1:0] row_banks, early_banks, late_banks;
        number_t [MAX_STRIDED_ROWS-1:0] offsets;
        number_t [ROWS-1:0] early_group_row, late_group_row;
        logic [$clog2(MAX_STRIDED_ROWS+1)-1:0] excess_strides;
        always_ff @(posedge clk) begin
            for (int r = 0; r < MAX_STRIDED_ROWS; r++) begin
                automatic banks_t unwrapped_bank = banks_t'(next_bank) + banks_t'(banks[r]);
                automatic logic over = unwrapped_bank >= banks_t'(ROWS), first = number_t'(wrapped_bank(unwrapped_bank)) < pass.in_turn;
                row_banks[r] <= bank_t'(wrapped_bank(unwrapped_bank));
                offsets[r] <= words[r] + lap_offsets[3'(over)+3'(!first)];
            end
        end

        // No two of the row strides that move together are in the same bank.
        word_t [MAX_STRIDED_ROWS-1:0] bank_words;
        always_comb begin
            for (int b = 0; b < ROWS; b++) begin
                strided_address[b] = '0;
                for (int r = 0; r < MAX_STRIDED_ROWS; r++)
                    if (row_moves[r] && number_t'(row_banks[r]) == b) strided_address[b] = place + offsets[r];
            end
            for (int r = 0; r < MAX_STRIDED_ROWS; r++) bank_words[r] = buffer_read_words[late_banks[r]];
            for (int b = 0; b < ROWS; b++) strided_words[b] = bank_words[minimum(late_group_row[b], MAX_STRIDED_ROWS - 1)];
        end

        // If loading went beyond the end of the phase, it returns, one cycle after the distance is known.
        assign rewound_bank = banks_t'(bank) - banks_t'(banks[excess_strides]);
        always_ff @(posedge clk) begin
            early_banks <= row_banks;
            late_banks <= early_banks;
            early_group_row <= group_row;
            late_group_row <= early_group_row;
            excess_strides <= ($clog2(MAX_STRIDED_ROWS+1))'(minimum(excess, MAX_STRIDED_ROWS));
            case (state)
                IDLE: begin
                    bank <= bank_t'(zero_bank);
                    lap <= first_lap;
                end
                RUN: begin
                    row_bank <= next_bank;
                    if (loading) begin
                        if (load_columns.last) piece <= piece + pass.in_block_pitch;
                        place <= load_columns.last ? piece + pass.in_block_pitch : place + 1;
                    end
                    if (ends_row_load) {row_lap, piece, place} <= {3{next_row_lap}};
                    if (ends_group_load) begin
                        bank <= next_bank;
                        lap <= next_group_lap;
                        {row_lap, piece, place} <= {3{next_group_lap}};
                    end
                end
                NEXT: begin
                    bank <= bank_t'(rewound_bank[BANK_BITS] ? rewound_bank + banks_t'(ROWS) : rewound_bank);
                    lap <= lap - (rewound_bank[BANK_BITS] ? more_words[excess_strides] : words[excess_strides]);
                end
                default: begin
                    row_bank <= bank;
                    {row_lap, piece, place} <= {3{lap}};
                end
            endcase
        end
    end

    // --- feed: one step is a kernel row, a group of kernel columns and a channel block, at one column --------------
    number_t left_edge, pixel, ky, phase_offset, feed_bank, feed_slot, block, block_offset;
    countdown_t blocks, groups, kernel_rows, positions, kernel_phases;
    logic room, feeding, ends_group, ends_row, ends_window, ends_tile, ends_stride;
    assign feeding = state == RUN && remaining_feeds != 0 && room;
    assign ends_group = blocks.last;
    assign ends_row = ends_group && groups.last;
    assign ends_window = ends_row && kernel_rows.last;
    assign ends_tile = ends_window && positions.last;
    assign ends_stride = ends_row && kernel_phases.last;

    number_t tile_block, tile_block_offset;  // first channel block of the channel tile that is fed
    number_t next_feed_slot, next_block, next_block_offset, next_left_edge;
    logic begins_blocks;
    always_comb begin
        next_feed_slot = feed_slot == pass.last_slot ? 0 : feed_slot + pass.slot_words;
        // A channel tile of a depthwise layer reads the next channel blocks, not the same ones again.
        begins_blocks = ends_group && !(ends_tile && pass.depthwise != 0);
        next_block = begins_blocks ? tile_block : block + 1;
        next_block_offset = begins_blocks ? tile_block_offset : block_offset + pass.block_words;
        next_left_edge = ends_tile ? -pass.pad_left : ends_window ? left_edge + pass.advance : left_edge;
    end

    // Stage 1: the addresses of two neighbouring words, one in the even and one in the odd half. If a word is outside
    // of the map, its value is not used, and its address is moved into the buffer.
    number_t word, low_word, from;
    logic block_exists;
    always_comb begin
        word = pass.pixel_input != 0 ? pixel >>> PIXEL_SHIFT : pixel;
        block_exists = block < pass.in_blocks;
        low_word = maximum(-1, minimum(word, pass.block_words - 1));
        from = phase_offset + (block_exists ? block_offset : 0) + low_word;
    end
    logic s1_valid, s1_next, s1_block;
    number_t s1_slot_address, s1_next_slot_address, s1_pixel, s1_shift;
    row_t s1_row;
    logic [BANK_BITS-1:0] s1_bank;
    always_ff @(posedge clk) begin
        s1_valid <= feeding && !reset;
        s1_slot_address <= feed_slot + from;
        s1_next_slot_address <= next_feed_slot + from;
        s1_next <= low_word < pass.block_words - 1;
        s1_bank <= BANK_BITS'(feed_bank);
        s1_pixel <= pixel;
        s1_shift <= pass.pixel_input != 0 ? pixel & (WORD_PIXELS - 1) : 0;
        s1_row <= row_t'(start_row + ky - pass.pad_top);
        s1_block <= block_exists;
    end

    // Stage 2: read the words. Each half of a bank uses one of two addresses, in this slot or in the next one.
    word_t [ROWS-1:0] even, odd;
    logic [ADDRESS_BITS-1:0] slot_even_address, slot_odd_address, next_slot_even_address, next_slot_odd_address;
    assign slot_even_address = ADDRESS_BITS'(maximum(0, (s1_slot_address + number_t'(s1_next)) >>> 1));
    assign slot_odd_address = ADDRESS_BITS'(maximum(0, s1_slot_address >>> 1));
    assign next_slot_even_address = ADDRESS_BITS'(maximum(0, (s1_next_slot_address + number_t'(s1_next)) >>> 1));
    assign next_slot_odd_address = ADDRESS_BITS'(maximum(0, s1_next_slot_address >>> 1));
    for (genvar bank = 0; bank < ROWS; bank++) begin : banks
        logic in_next_slot;
        assign in_next_slot = bank < number_t'(s1_bank);
        sdp_ram #(.WIDTH(WORD_BITS), .DEPTH(HALF_DEPTH), .STYLE(ROW_MEMORY)) even_words (
            .clk, .write(store[bank] && !store_address[bank][0]),
            .write_address(ADDRESS_BITS'(store_address[bank] >> 1)), .write_data(store_words[bank]),
            .read(s1_valid), .read_address(in_next_slot ? next_slot_even_address : slot_even_address), .read_data(even[bank]));
        sdp_ram #(.WIDTH(WORD_BITS), .DEPTH(HALF_DEPTH), .STYLE(ROW_MEMORY)) odd_words (
            .clk, .write(store[bank] && store_address[bank][0]),
            .write_address(ADDRESS_BITS'(store_address[bank] >> 1)), .write_data(store_words[bank]),
            .read(s1_valid), .read_address(in_next_slot ? next_slot_odd_address : slot_odd_address), .read_data(odd[bank]));
    end
    logic s2_valid, s2_slot_odd, s2_next_slot_odd;
    logic [BANK_BITS-1:0] s2_bank;
    number_t s2_pixel, s2_shift;
    logic [ROWS-1:0] s2_exists;
    always_ff @(posedge clk) begin
        s2_valid <= s1_valid && !reset;
        s2_slot_odd <= s1_slot_address[0];
        s2_next_slot_odd <= s1_next_slot_address[0];
        s2_bank <= s1_bank;
        s2_pixel <= s1_pixel;
        s2_shift <= s1_shift;
        for (int m = 0; m < ROWS; m++)
            s2_exists[m] <= s1_block && row_exists(s1_row + stride_rows[m], row_t'(pass.in_height));
    end

    // Stages 3 and 4: assign two words to each row. The banks are rotated by ``feed_bank``: by multiples of four, then
    // by the rest.
    logic s3_valid, s4_valid;
    logic [1:0] s3_bank;
    logic [POSITIONS-1:0][STEP_PIXELS-1:0] in_map, s3_inside, s4_inside;
    logic [POSITIONS-1:0][SHIFT_BITS-1:0] starts, s3_starts, s4_starts;
    logic [ROWS-1:0] s3_exists, s4_exists, s3_odd, s4_odd;
    word_t [ROWS-1:0][1:0] s3_words, s4_words;  // the word of odd and the word of even address
    always_comb begin
        for (int p = 0; p < POSITIONS; p++) begin
            starts[p] = SHIFT_BITS'(pass.pixel_input != 0 ? s2_shift + p : p * WORD_PIXELS);
            for (int q = 0; q < STEP_PIXELS; q++) begin
                automatic number_t place = s2_pixel + (pass.pixel_input != 0 ? p + q : p);
                in_map[p][q] = place >= 0 && place < pass.in_width;
            end
        end
    end
    always_ff @(posedge clk) begin
        s3_valid <= s2_valid && !reset;
        s3_bank <= 2'(s2_bank);
        s3_inside <= in_map;
        s3_starts <= starts;
        s3_exists <= s2_exists;
        s4_valid <= s3_valid && !reset;
        s4_inside <= s3_inside;
        s4_starts <= s3_starts;
        s4_exists <= s3_exists;
        s4_odd <= s3_odd;
        for (int m = 0; m < ROWS; m++) begin
            s3_odd[m] <= m + number_t'(s2_bank) < ROWS ? s2_slot_odd : s2_next_slot_odd;
            for (int fours = 0; 4 * fours < ROWS; fours++)
                if (number_t'(s2_bank) >>> 2 == fours)
                    s3_words[m] <= {odd[(m+4*fours)%ROWS], even[(m+4*fours)%ROWS]};
            for (int ones = 0; ones < 4; ones++)
                if (s3_bank == 2'(ones)) s4_words[m] <= s3_words[(m+ones)%ROWS];
        end
    end

    // Stage 5: the values of the windows, or of padding. Positions that are computed together are neighbours.
    logic s5_valid;
    word_t [ROWS-1:0][POSITIONS-1:0] s5_values, values;
    for (genvar m = 0; m < ROWS; m++) begin : row_values
        for (genvar p = 0; p < POSITIONS; p++) begin : position_values
            window gather (
                .words(s4_words[m]), .start(s4_starts[p] + SHIFT_BITS'(s4_odd[m] ? WORD_PIXELS : 0)), .pixels(pass.pixel_input != 0),
                .inside_map(s4_inside[p] & {STEP_PIXELS{s4_exists[m]}}), .around(16'(pass.around)),
                .values(values[m][p]));
        end
    end
    always_ff @(posedge clk) begin
        s5_valid <= s4_valid && !reset;
        s5_values <= values;
    end

    // The FIFO has LATENCY places more than it needs for the steps in flight. When the array continues after a stall,
    // these steps keep it busy until new ones arrive.
    fifo #(.WIDTH(ROWS * POSITIONS * WORD_BITS), .DEPTH(2 * LATENCY + 2), .SLACK(LATENCY)) steps (
        .clk, .reset, .in_valid(s5_valid), .in_ready(room), .in_data(s5_values), .out_valid(activations_valid),
        .out_ready(activations_ready), .out_data(activations));

    // --- phases -------------------------------------------------------------------------------------------------
    logic phase_ends, ends_load, last_tile, last_round;
    assign ends_load = loading && load_words.last && load_phases.last;
    assign phase_ends = remaining_feeds == number_t'(feeding) && (!group_pending || (ends_load && !next_group_pending));
    assign last_tile = tile + 1 == pass.row_tiles;
    assign last_round = pass.inputs_resident == 0 || round + 1 == pass.channel_tiles;
    assign done = state == IDLE;

    always_ff @(posedge clk) begin
        if (reset) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                state <= BEGIN;
                phase <= FIRST;
                round <= 0;
                tile <= 0;
                end_stride <= ROWS + pass.ahead;
                {start_slot, start_row, start_block, start_block_offset} <= '0;
                load_offset <= 0;
                load_stride <= first_stride;
                load_row <= first_stride;
                load_slot <= first_slot;
                load_bank <= load_first_bank;
                load_lap <= first_lap;
                load_piece <= first_lap;
                load_place <= first_lap;
                load_columns <= start_countdown(pass.burst_words);
                load_words <= start_countdown(pass.row_words);
                load_phases <= start_countdown(pass.phases);
            end
            BEGIN: begin
                state <= RUN;
                remaining_feeds <= phase == TILE ? pass.row_feeds : 0;
                group_pending <= loads && load_stride < phase_end && load_row < map_end;
                next_group_pending <= load_stride + group < phase_end && load_row + group_rows < map_end;
                end_stride <= phase_end;
                left_edge <= -pass.pad_left;
                pixel <= -pass.pad_left;
                {ky, phase_offset} <= '0;
                feed_bank <= feed_first_bank;
                feed_slot <= start_slot;
                block <= start_block;
                block_offset <= start_block_offset;
                tile_block <= start_block;
                tile_block_offset <= start_block_offset;
                blocks <= start_countdown(pass.tile_blocks);
                groups <= start_countdown(pass.kernel_groups);
                kernel_rows <= start_countdown(pass.kernel_height);
                positions <= start_countdown(pass.positions == 1 ? pass.out_width : (pass.out_width + POSITIONS - 1) / POSITIONS);
                kernel_phases <= start_countdown(pass.stride);
            end
            RUN: begin
                if (loading) begin
                    load_words <= next_countdown(load_words);
                    load_offset <= load_words.last && load_phases.last ? 0 : load_offset + 1;
                    load_columns <= next_countdown(load_columns);
                    load_place <= load_columns.last ? load_piece + pass.in_block_pitch : load_place + 1;
                    if (load_columns.last) load_piece <= load_piece + pass.in_block_pitch;
                    if (load_words.last) begin
                        load_phases <= next_countdown(load_phases);
                        load_row <= load_row + (load_phases.last ? rows_to_next_group : 1);
                        load_piece <= load_phases.last ? next_lap : load_lap;
                        load_place <= load_phases.last ? next_lap : load_lap;
                    end
                    if (ends_load) begin
                        group_pending <= next_group_pending;
                        next_group_pending <= load_stride + 2 * group < end_stride && load_row + rows_to_group_after < map_end;
                        load_stride <= load_stride + group;
                        load_bank <= load_bank + group - (wraps ? ROWS : 0);
                        load_lap <= next_lap;
                        if (wraps) load_slot <= next_load_slot;
                    end
                end
                if (feeding) begin
                    remaining_feeds <= remaining_feeds - 1;
                    blocks <= next_countdown(blocks);
                    block <= next_block;
                    block_offset <= next_block_offset;
                    left_edge <= next_left_edge;
                    if (ends_group) begin
                        groups <= next_countdown(groups);
                        pixel <= ends_row ? next_left_edge : pixel + pass.group_pixels;
                    end
                    if (ends_row) begin
                        kernel_rows <= next_countdown(kernel_rows);
                        kernel_phases <= ends_window ? restart_countdown(kernel_phases) : next_countdown(kernel_phases);
                        ky <= ends_window ? 0 : ky + 1;
                        phase_offset <= ends_window || ends_stride ? 0 : phase_offset + pass.row_words;
                        if (ends_window) begin
                            positions <= next_countdown(positions);
                            feed_bank <= feed_first_bank;
                            feed_slot <= start_slot;
                        end else if (ends_stride) begin
                            feed_bank <= feed_bank == ROWS - 1 ? 0 : feed_bank + 1;
                            if (feed_bank == ROWS - 1) feed_slot <= next_feed_slot;
                        end
                    end
                    if (ends_tile && pass.depthwise != 0) begin
                        tile_block <= next_block;
                        tile_block_offset <= next_block_offset;
                    end
                end
                if (phase_ends) state <= REWIND;
            end
            REWIND: begin
                state <= NEXT;
                rewind_rows <= address_product(pass.stride, excess);
                if (excess != 0) begin
                    load_stride <= end_stride;
                    load_bank <= rewind_bank < 0 ? rewind_bank + ROWS : rewind_bank;
                    if (rewind_bank < 0) begin
                        load_slot <= load_slot == 0 ? pass.last_slot : load_slot - pass.slot_words;
                        load_lap <= load_lap - lap_pitch;
                        load_piece <= load_lap - lap_pitch;
                        load_place <= load_lap - lap_pitch;
                    end
                end
            end
            default: begin
                state <= BEGIN;
                load_row <= load_row - rewind_rows;
                if (phase == FIRST) begin
                    phase <= TILE;
                end else if (phase == TILE && more_rows && pass.overlap == 0) begin
                    phase <= BETWEEN;
                end else begin
                    phase <= TILE;
                    tile <= last_tile ? 0 : tile + 1;
                    start_slot <= last_tile ? 0
                        : start_slot == pass.last_slot ? 0 : start_slot + pass.slot_words;
                    start_row <= last_tile ? 0 : start_row + tile_rows;
                    if (last_tile) begin
                        round <= round + 1;
                        if (last_round) state <= IDLE;
                        if (pass.depthwise != 0) begin
                            start_block <= start_block + pass.tile_blocks;
                            start_block_offset <= start_block_offset + tile_words;
                        end
                    end
                end
            end
        endcase
    end
endmodule

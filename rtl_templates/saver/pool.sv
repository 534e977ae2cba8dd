// The max pool on accumulators. Requantisation is monotonic, so that pooling before it gives the same bits, and a 2 × 2
// pool needs a quarter of the requantisers. The module takes one position of every row, and outputs SAVE_ROWS rows of
// pooled sums per cycle. Without a pool it only regroups the rows.
//
// A window of any size is a pass of its own (WINDOWS): the places of a window arrive as consecutive positions, and the
// largest sum so far is stored. In a pass that multiplies two maps (MAP_PRODUCTS), the values of the two maps also
// arrive as consecutive positions: ``factors`` outputs the first ones, ``group`` the second ones. An upsample (UPSCALE)
// is the inverse of a pool: every column is output twice, and every row as two rows.
module pool
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    output logic done,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    input logic tile_valid,
    output logic tile_ready,
    input pool_tile_t tile,
    input logic sums_valid,
    output logic sums_ready,
    input sums_t [ROWS-1:0][POSITIONS-1:0] sums,  // the positions that were computed together
    output logic group_valid,
    input logic group_ready,
    output group_t group,
    output factors_t factors
);
    localparam int ADDRESS_BITS = KEPT_DEPTH > 1 ? $clog2(KEPT_DEPTH) : 1;

    function automatic sums_t larger(sums_t a, sums_t b);
        for (int n = 0; n < COLUMNS; n++) larger[n] = signed'(a[n]) > signed'(b[n]) ? a[n] : b[n];
    endfunction

    logic s1_valid, s1_last;  // stage 1: a window, whose rows are output
    number_t s1_count, s1_channel;
    // The windows of a group cover SPAN neighbouring rows from ``s1_first`` on. Row −1 is the stored row of the tile
    // above.
    logic signed [15:0] first_row, s1_first;

    // --- per cycle: a column arrives, or a further group of the window is output ----------------------------------
    logic no_pool, stride_one, stride_two, stores_row;
    assign no_pool = pass.pool_size == 1;
    // A pool of stride 1 outputs column x − 1 when column x arrives, and its last column one step after the last
    // arrival.
    assign stride_one = !no_pool && pass.pool_stride == 1;
    assign stride_two = !no_pool && !stride_one;
    assign stores_row = !no_pool && pass.row_tiles > 1 && (stride_one || ROWS % 2 == 1);

    logic compares_places, multiplies_maps, upscales;
    assign compares_places = WINDOWS > 0 && pass.pool_stride == 0;
    assign multiplies_maps = MAP_PRODUCTS > 0 && pass.pool_stride < 0;
    assign upscales = UPSCALE > 1 && pass.upscale > 1;

    // The places of a window: all columns of a kernel row, then the next kernel row.
    countdown_t kernel_columns, kernel_rows;
    logic first_place, last_place, repeats;  // repeats: the column is output for the second time
    assign last_place = (!compares_places && !multiplies_maps) || (kernel_columns.last && kernel_rows.last);

    logic running;
    number_t x, count;
    assign first_row = 16'(count * SAVE_ROWS);
    number_t last_arrival, last_column;
    // A position may become several columns, so that save_width counts them.
    assign last_arrival = (no_pool && !upscales ? pass.save_width : pass.out_width) - 1;
    assign last_column = last_arrival + number_t'(stride_one);

    // Two positions that arrive together are processed one after the other.
    sums_t [ROWS-1:0] input_sums;
    logic second, last_position;
    assign second = POSITIONS > 1 && pass.positions > 1 && x[0];
    assign last_position = POSITIONS == 1 || pass.positions == 1 || x[0] || x == last_arrival;
    always_comb begin
        for (int m = 0; m < ROWS; m++) input_sums[m] = sums[m][second ? POSITIONS - 1 : 0];
    end

    logic odd, first_group, complete, last_group, repeat_next, column_ends, tile_ends, reads_column, advances, room;
    logic s1_store_row, read_after_write;  // read_after_write: a tile of one column would read the row that is written in this cycle
    always_comb begin
        odd = x[0];
        first_group = count == 0 && !repeats;
        complete = (no_pool && last_place) || (stride_one && x != 0) || (stride_two && (odd || x == last_arrival));
        last_group = !complete || count == tile.last_group;
        repeat_next = last_group && upscales && !repeats;
        column_ends = last_group && last_place && !repeat_next;
        tile_ends = column_ends && x == last_column;
        reads_column = first_group && (!stride_one || x != last_column);
        room = !s1_valid || group_ready;
        read_after_write = s1_store_row && complete && first_group && x == 0;
        advances = running && tile_valid && (!reads_column || sums_valid) && room && !read_after_write;
    end
    assign sums_ready = advances && reads_column && last_position;
    assign tile_ready = advances && tile_ends;
    assign done = !running;

    // The window: this column, or the maximum of two neighbours or of all places so far.
    sums_t [ROWS-1:0] column, window, s1_window;
    logic compares_pair;
    assign compares_pair = (stride_one && x != 0) || (stride_two && odd) || (compares_places && !first_place);
    always_comb begin
        for (int m = 0; m < ROWS; m++) begin
            window[m] = input_sums[m];
            if (stride_one && x == last_column) window[m] = column[m];
            else if (compares_pair) window[m] = larger(input_sums[m], column[m]);
        end
    end

    // --- the last row of a tile, stored for the tile below: [channel tile][column] --------------------------------
    logic [ADDRESS_BITS-1:0] stored_row_address;
    sums_t stored_row;
    assign stored_row_address = ADDRESS_BITS'(tile.stored_address + (stride_one ? x - 1 : x >>> 1));
    logic store_row;
    logic [ADDRESS_BITS-1:0] s1_stored_row_address;
    assign store_row = advances && stores_row && complete && first_group;
    sdp_ram #(.WIDTH(COLUMNS * SUM_BITS), .DEPTH(KEPT_DEPTH), .STYLE(KEPT_MEMORY)) stored_rows (
        .clk, .write(s1_store_row), .write_address(s1_stored_row_address), .write_data(s1_window[ROWS-1]),
        .read(store_row), .read_address(stored_row_address), .read_data(stored_row));

    // --- one cycle later: rows of the window ----------------------------------------------------------------------
    // verilator lint_off UNUSEDSIGNAL
    tile_rows_t s1_rows;
    sums_t [ROWS-1:0] s1_previous_place;  // the place before the last place of the window
    // verilator lint_on UNUSEDSIGNAL

    always_ff @(posedge clk) begin
        s1_store_row <= store_row && !reset;
        s1_stored_row_address <= stored_row_address;
        if (room) begin
            s1_valid <= advances && complete && !reset;
            s1_last <= tile_ends && tile.last;
            s1_count <= count;
            s1_first <= (upscales ? first_row >>> 1 : stride_two ? first_row <<< 1 : first_row) - 16'(tile.rows.stored_rows);
            s1_channel <= tile.channel;
            s1_rows <= tile.rows;
        end
        if (advances && first_group) begin
            s1_window <= window;
            s1_previous_place <= column;
            if (reads_column) column <= compares_places ? window : input_sums;
        end
        if (reset) begin
            running <= 1'b0;
        end else if (start) begin
            running <= 1'b1;
            x <= 0;
            count <= 0;
            repeats <= 1'b0;
            first_place <= 1'b1;
            kernel_columns <= start_countdown(pass.kernel_groups);
            kernel_rows <= start_countdown(pass.kernel_height);
        end else if (advances) begin
            count <= last_group ? 0 : count + 1;
            if (last_group) begin
                repeats <= repeat_next;
                first_place <= last_place;
                kernel_columns <= next_countdown(kernel_columns);
                if (kernel_columns.last) kernel_rows <= next_countdown(kernel_rows);
            end
            if (column_ends) x <= tile_ends ? 0 : x + 1;
            if (tile_ends && tile.last) running <= 1'b0;
        end
        if (reset) s1_valid <= 1'b0;
    end

    // SPAN neighbouring rows contain exactly one row of each residue modulo SPAN, so that each place has few choices.
    localparam int SPAN = 2 * SAVE_ROWS;
    localparam int SPAN_BITS = $clog2(SPAN);
    localparam int LAPS = (ROWS + SPAN - 1) / SPAN;
    localparam int LAP_BITS = LAPS > 0 ? $clog2(LAPS + 1) : 1;
    sums_t [SPAN-1:0] near;  // row r at place r modulo SPAN
    for (genvar place = 0; place < SPAN; place++) begin : places
        localparam int STORED = place == SPAN - 1 ? 1 : 0;  // the stored row, row −1, has this place
        localparam int CHOICES = STORED + (ROWS > place ? (ROWS - 1 - place) / SPAN + 1 : 0);
        logic [LAP_BITS-1:0] lap;
        assign lap = LAP_BITS'((s1_first + 16'(SPAN - 1 - place + STORED * SPAN)) >>> SPAN_BITS);
        always_comb begin
            near[place] = STORED != 0 || ROWS <= place ? stored_row : s1_window[minimum(place, ROWS - 1)];
            for (int choice = 1; choice < CHOICES; choice++)
                if (lap == LAP_BITS'(choice)) near[place] = s1_window[place+(choice-STORED)*SPAN];
        end
    end

    // An output row: the maximum of two neighbouring rows, one at an even and one at an odd place, or one row
    // unchanged.
    always_comb begin
        for (int r = 0; r < SAVE_ROWS; r++) begin
            automatic logic signed [15:0] upper = s1_first + 16'(upscales ? r / 2 : stride_two ? 2 * r : r);
            automatic logic pooled = !no_pool && upper + 1 < 16'(s1_rows.rows);
            automatic logic [SPAN_BITS-1:0] place = upper[SPAN_BITS-1:0];
            automatic logic [SPAN_BITS-1:0] even_place = place + SPAN_BITS'(place[0]);
            automatic sums_t at_even = near[even_place];
            automatic sums_t at_odd = near[place|SPAN_BITS'(1)];
            for (int n = 0; n < COLUMNS; n++)
                group.row[r][n] = (pooled ? signed'(at_odd[n]) > signed'(at_even[n]) : upper[0])
                    ? at_odd[n] : at_even[n];
            for (int n = 0; n < COLUMNS; n++)
                factors[r][n] = MAP_PRODUCTS > 0
                    ? s1_previous_place[minimum(s1_count * SAVE_ROWS + r, ROWS - 1)][n][VALUE_BITS-1:0] : '0;
        end
        group.channel = s1_channel;
        group.last = s1_last;
    end
    assign group_valid = s1_valid;
endmodule

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
    logic plain, lagging, halving, keeps;
    assign plain = pass.pool_size == 1;
    // A pool of stride 1 outputs column x − 1 when column x arrives, and its last column one step after the last
    // arrival.
    assign lagging = !plain && pass.pool_stride == 1;
    assign halving = !plain && !lagging;
    assign keeps = !plain && pass.row_tiles > 1 && (lagging || ROWS % 2 == 1);

    logic compares, multiplies, upscales;
    assign compares = WINDOWS > 0 && pass.pool_stride == 0;
    assign multiplies = MAP_PRODUCTS > 0 && pass.pool_stride < 0;
    assign upscales = UPSCALE > 1 && pass.upscale > 1;

    // The places of a window: all columns of a kernel row, then the next kernel row.
    countdown_t kernel_columns, kernel_rows;
    logic first_place, last_place, repeats;  // repeats: the column is output for the second time
    assign last_place = (!compares && !multiplies) || (kernel_columns.last && kernel_rows.last);

    logic running;
    number_t x, count;
    assign first_row = 16'(count * SAVE_ROWS);
    number_t last_arrival, last_column;
    // A position may become several columns, so that save_width counts them.
    assign last_arrival = (plain && !upscales ? pass.save_width : pass.out_width) - 1;
    assign last_column = last_arrival + number_t'(lagging);

    // Two positions that arrive together are processed one after the other.
    sums_t [ROWS-1:0] arrived;
    logic second, last_of_together;
    assign second = POSITIONS > 1 && pass.positions > 1 && x[0];
    assign last_of_together = POSITIONS == 1 || pass.positions == 1 || x[0] || x == last_arrival;
    always_comb begin
        for (int m = 0; m < ROWS; m++) arrived[m] = sums[m][second ? POSITIONS - 1 : 0];
    end

    logic odd, first_group, complete, last_group, again, leaves, ends, arrives, goes, room;
    logic s1_keeps, overtakes;  // overtakes: a tile of one column would read the row that is written in this cycle
    always_comb begin
        odd = x[0];
        first_group = count == 0 && !repeats;
        complete = (plain && last_place) || (lagging && x != 0) || (halving && (odd || x == last_arrival));
        last_group = !complete || count == tile.last_group;
        again = last_group && upscales && !repeats;
        leaves = last_group && last_place && !again;
        ends = leaves && x == last_column;
        arrives = first_group && (!lagging || x != last_column);
        room = !s1_valid || group_ready;
        overtakes = s1_keeps && complete && first_group && x == 0;
        goes = running && tile_valid && (!arrives || sums_valid) && room && !overtakes;
    end
    assign sums_ready = goes && arrives && last_of_together;
    assign tile_ready = goes && ends;
    assign done = !running;

    // The window: this column, or the maximum of two neighbours or of all places so far.
    sums_t [ROWS-1:0] column, window, s1_window;
    logic pairs;
    assign pairs = (lagging && x != 0) || (halving && odd) || (compares && !first_place);
    always_comb begin
        for (int m = 0; m < ROWS; m++) begin
            window[m] = arrived[m];
            if (lagging && x == last_column) window[m] = column[m];
            else if (pairs) window[m] = larger(arrived[m], column[m]);
        end
    end

    // --- the last row of a tile, stored for the tile below: [channel tile][column] --------------------------------
    logic [ADDRESS_BITS-1:0] kept_at;
    sums_t kept_row;
    assign kept_at = ADDRESS_BITS'(tile.kept_address + (lagging ? x - 1 : x >>> 1));
    logic keeps_now;
    logic [ADDRESS_BITS-1:0] s1_kept_at;
    assign keeps_now = goes && keeps && complete && first_group;
    sdp_ram #(.WIDTH(COLUMNS * SUM_BITS), .DEPTH(KEPT_DEPTH), .STYLE(KEPT_MEMORY)) kept (
        .clk, .write(s1_keeps), .write_address(s1_kept_at), .write_data(s1_window[ROWS-1]),
        .read(keeps_now), .read_address(kept_at), .read_data(kept_row));

    // --- one cycle later: rows of the window ----------------------------------------------------------------------
    // verilator lint_off UNUSEDSIGNAL
    tile_rows_t s1_rows;
    sums_t [ROWS-1:0] s1_before;  // the place before the last place of the window
    // verilator lint_on UNUSEDSIGNAL

    always_ff @(posedge clk) begin
        s1_keeps <= keeps_now && !reset;
        s1_kept_at <= kept_at;
        if (room) begin
            s1_valid <= goes && complete && !reset;
            s1_last <= ends && tile.last;
            s1_count <= count;
            s1_first <= (upscales ? first_row >>> 1 : halving ? first_row <<< 1 : first_row) - 16'(tile.rows.kept);
            s1_channel <= tile.channel;
            s1_rows <= tile.rows;
        end
        if (goes && first_group) begin
            s1_window <= window;
            s1_before <= column;
            if (arrives) column <= compares ? window : arrived;
        end
        if (reset) begin
            running <= 1'b0;
        end else if (start) begin
            running <= 1'b1;
            x <= 0;
            count <= 0;
            repeats <= 1'b0;
            first_place <= 1'b1;
            kernel_columns <= begun(pass.kernel_groups);
            kernel_rows <= begun(pass.kernel_height);
        end else if (goes) begin
            count <= last_group ? 0 : count + 1;
            if (last_group) begin
                repeats <= again;
                first_place <= last_place;
                kernel_columns <= counted(kernel_columns);
                if (kernel_columns.last) kernel_rows <= counted(kernel_rows);
            end
            if (leaves) x <= ends ? 0 : x + 1;
            if (ends && tile.last) running <= 1'b0;
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
        localparam int KEPT = place == SPAN - 1 ? 1 : 0;  // the stored row, row −1, has this place
        localparam int CHOICES = KEPT + (ROWS > place ? (ROWS - 1 - place) / SPAN + 1 : 0);
        logic [LAP_BITS-1:0] lap;
        assign lap = LAP_BITS'((s1_first + 16'(SPAN - 1 - place + KEPT * SPAN)) >>> SPAN_BITS);
        always_comb begin
            near[place] = KEPT != 0 || ROWS <= place ? kept_row : s1_window[minimum(place, ROWS - 1)];
            for (int choice = 1; choice < CHOICES; choice++)
                if (lap == LAP_BITS'(choice)) near[place] = s1_window[place+(choice-KEPT)*SPAN];
        end
    end

    // An output row: the maximum of two neighbouring rows, one at an even and one at an odd place, or one row
    // unchanged.
    always_comb begin
        for (int r = 0; r < SAVE_ROWS; r++) begin
            automatic logic signed [15:0] upper = s1_first + 16'(upscales ? r / 2 : halving ? 2 * r : r);
            automatic logic pooled = !plain && upper + 1 < 16'(s1_rows.rows);
            automatic logic [SPAN_BITS-1:0] place = upper[SPAN_BITS-1:0];
            automatic logic [SPAN_BITS-1:0] even_place = place + SPAN_BITS'(place[0]);
            automatic sums_t at_even = near[even_place];
            automatic sums_t at_odd = near[place|SPAN_BITS'(1)];
            for (int n = 0; n < COLUMNS; n++)
                group.row[r][n] = (pooled ? signed'(at_odd[n]) > signed'(at_even[n]) : upper[0])
                    ? at_odd[n] : at_even[n];
            for (int n = 0; n < COLUMNS; n++)
                factors[r][n] = MAP_PRODUCTS > 0
                    ? s1_before[minimum(s1_count * SAVE_ROWS + r, ROWS - 1)][n][VALUE_BITS-1:0] : '0;
        end
        group.channel = s1_channel;
        group.last = s1_last;
    end
    assign group_valid = s1_valid;
endmodule

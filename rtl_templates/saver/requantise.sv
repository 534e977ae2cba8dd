// Requantises accumulators: y = saturate(((sum + bias) · m + 2^(s − 1)) >> s), where m is ``negative_multiplier`` if
// sum + bias < 0, else ``multiplier``.
//
// In engines with LATE_OFFSETS, a requantiser may have a late offset: y = saturate((sum · m + offset) >> s), with a
// signed multiplier of 17 bits and an offset of 48 bits. In a layer that rounds ties to even (LATE_OFFSETS 2), the
// offset does not include 2^(s − 1). In engines with TABLE_DEPTH, a layer whose activation is not a multiplication
// looks each y up in a table. A y of more than 8 bits uses a piecewise-linear table (TABLE_SLOPES).
//
// The module first reads the constants of all output channels of the pass, and the table. Then it requantises SAVE_ROWS
// rows of a position per cycle. The pipeline never stalls: a group is accepted if the result FIFO has room for all
// groups in flight.
module requantise
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    output logic done,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    output logic command_valid,
    input logic command_ready,
    output logic [31:0] command_address,
    output logic [31:0] command_words,
    input logic constant_valid,
    output logic constant_ready,
    // verilator lint_off UNUSEDSIGNAL
    input logic [REQUANTISER_BITS-1:0] constant,  // bias, multiplier | negative << 16, shift, table and rounding
    // verilator lint_on UNUSEDSIGNAL
    input logic group_valid,
    output logic group_ready,
    input group_t group,
    output logic result_valid,
    input logic result_ready,
    output results_t result
);
    localparam int ADDRESS_BITS = CHANNEL_TILES > 1 ? $clog2(CHANNEL_TILES) : 1;
    localparam int SHIFT_STAGES = LATE_OFFSETS > 0 ? 5 : 4;  // stages that delay a shift until its product is valid
    localparam int RESULT_LATENCY = SHIFT_STAGES + 4;  // cycles from a group to its saturated results
    localparam int LATENCY = RESULT_LATENCY + (TABLE_SLOPES > 0 ? 5 : TABLE_DEPTH > 0 ? 1 : 0);
    localparam int SEGMENT_BITS = 8;  // bits of a place within a segment

    typedef enum logic [2:0] {IDLE, REQUEST, READ, REQUEST_TABLE, READ_TABLE, RUN} state_t;
    state_t state;
    number_t tile, entry;
    logic uses_table, has_table, to_parity, odd;
    // verilator lint_off UNUSEDSIGNAL
    logic [3:0] align_shift;  // left shift of a value, after which its upper bits are its address in the table
    // verilator lint_on UNUSEDSIGNAL
    assign has_table = TABLE_DEPTH > 0 && constant[111:96] != 0;
    countdown_t remaining;
    logic [COLUMNS-1:0] column_select;
    assign command_valid = state == REQUEST || state == REQUEST_TABLE;
    assign command_address = state == REQUEST ? pass.requantiser_base : pass.requantiser_base + pass.channels;
    assign command_words = state == REQUEST ? pass.channels : TABLE_DEPTH;
    assign constant_ready = state == READ || state == READ_TABLE;
    assign done = state == IDLE;

    logic room, group_taken, constant_written, entry_written;
    assign group_ready = state == RUN && room;
    assign group_taken = group_valid && group_ready;
    assign constant_written = constant_valid && state == READ;
    assign entry_written = constant_valid && state == READ_TABLE;

    always_ff @(posedge clk) begin
        if (reset) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                state <= REQUEST;
                tile <= 0;
                column_select <= COLUMNS'(1);
                uses_table <= 1'b0;
                remaining <= start_countdown(pass.channels);
            end
            REQUEST: if (command_ready) state <= READ;
            READ: if (constant_written) begin
                column_select <= {column_select[COLUMNS-2:0], column_select[COLUMNS-1]};
                if (column_select[COLUMNS-1]) tile <= tile + 1;
                // The first channel's constants say whether there is a table, and how ties are rounded.
                if (column_select[0] && tile == 0) begin
                    uses_table <= has_table;
                    {odd, to_parity} <= {constant[113], LATE_OFFSETS > 1 && constant[113:112] != 0};
                end
                remaining <= next_countdown(remaining);
                if (remaining.last) state <= uses_table || (column_select[0] && tile == 0 && has_table) ? REQUEST_TABLE : RUN;
            end
            REQUEST_TABLE: if (command_ready) begin
                state <= READ_TABLE;
                remaining <= start_countdown(TABLE_DEPTH);
                entry <= 0;
            end
            READ_TABLE: if (entry_written) begin
                entry <= entry + 1;
                align_shift <= 4'(SEGMENT_BITS + 1) - constant[67:64];
                remaining <= next_countdown(remaining);
                if (remaining.last) state <= RUN;
            end
            default: if (group_taken && group.last) state <= IDLE;
        endcase
    end

    logic [LATENCY-1:0] valid;  // one bit per stage
    always_ff @(posedge clk) valid <= reset ? '0 : {valid[LATENCY-2:0], group_taken};

    logic signed [RESULT_BITS-1:0] least, greatest;
    assign least = pass.limits[15:0];
    assign greatest = pass.limits[31:16];

    results_t saturated, out;
    for (genvar n = 0; n < COLUMNS; n++) begin : columns
        channel_t channel_constants;
        sdp_ram #(.WIDTH($bits(channel_t)), .DEPTH(CHANNEL_TILES), .STYLE(REQUANTISER_MEMORY)) constants (
            .clk, .write(constant_written && column_select[n]), .write_address(ADDRESS_BITS'(tile)),
            .write_data(constant[$bits(channel_t)-1:0]), .read(group_taken), .read_address(ADDRESS_BITS'(group.channel)),
            .read_data(channel_constants));

        // The shift minus 1, whether the half is added, and the late offset, delayed by stages.
        logic [SHIFT_STAGES-1:0][5:0] shifts;
        logic [SHIFT_STAGES-1:0] rounds;
        // verilator lint_off UNUSEDSIGNAL
        logic [2:0][47:0] offsets;
        // verilator lint_on UNUSEDSIGNAL
        always_ff @(posedge clk) begin
            shifts <= {shifts[SHIFT_STAGES-2:0], channel_constants.shift - 6'd1};
            rounds <= {rounds[SHIFT_STAGES-2:0], LATE_OFFSETS == 0 || !channel_constants.late || to_parity};
            offsets <= {offsets[1:0], LATE_OFFSETS > 0 && channel_constants.late ? {channel_constants.negative_multiplier, channel_constants.bias} : 48'd0};
        end

        for (genvar r = 0; r < SAVE_ROWS; r++) begin : rows
            requantise_sum requantiser (
                .clk, .sum(group.row[r][n]), .constants(channel_constants), .offset(offsets[2]),
                .coarse(shifts[SHIFT_STAGES-2][5:4]), .fine(shifts[SHIFT_STAGES-1][3:0]),
                .rounds(rounds[SHIFT_STAGES-1]), .to_parity, .odd, .least, .greatest, .result(saturated[r][n]));
            if (TABLE_DEPTH == 0) begin : no_table
                assign out[r][n] = saturated[r][n];
            end else if (TABLE_SLOPES > 0) begin : segment_table
                localparam int TABLE_BITS = $clog2(TABLE_DEPTH);
                look_up_segment segment (
                    .clk, .write(entry_written), .entry(TABLE_BITS'(entry)), .start(constant[RESULT_BITS-1:0]),
                    .slope(constant[49:32]), .align_shift, .uses_table, .value(saturated[r][n]), .result(out[r][n]));
            end else begin : value_table
                // The table by the value's two's complement: one copy per value that is looked up in a cycle.
                localparam int TABLE_BITS = $clog2(TABLE_DEPTH);
                logic [RESULT_BITS-1:0] value, table_value;
                sdp_ram #(.WIDTH(RESULT_BITS), .DEPTH(TABLE_DEPTH), .STYLE(TABLE_MEMORY)) values (
                    .clk, .write(entry_written), .write_address(TABLE_BITS'(entry)),
                    .write_data(constant[RESULT_BITS-1:0]), .read(1'b1),
                    .read_address(saturated[r][n][TABLE_BITS-1:0]), .read_data(table_value));
                always_ff @(posedge clk) value <= saturated[r][n];
                assign out[r][n] = uses_table ? table_value : value;
            end
        end
    end

    // The FIFO has LATENCY places more than it needs for the groups in flight. When arrange continues after a stall,
    // these results keep it busy until new ones arrive.
    fifo #(.WIDTH(SAVE_ROWS * COLUMNS * RESULT_BITS), .DEPTH(2 * LATENCY + 2), .SLACK(LATENCY)) results (
        .clk, .reset, .in_valid(valid[LATENCY-1]), .in_ready(room), .in_data(out), .out_valid(result_valid),
        .out_ready(result_ready), .out_data(result));
endmodule

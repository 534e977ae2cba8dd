// The PE array: ROWS output rows × COLUMNS output channels × LANES input channels per cycle, output-stationary. At 4
// bits, POSITIONS neighbouring positions of a row share every DSP. If PACK_COLUMNS is 3, a DSP computes six products
// (pe_row_six).
//
// A step, in which each PE multiplies once, is issued if its activations and weights are valid and the FIFOs of sums
// have room for all steps in flight. So no stage inside needs a stall; cycles without a step are bubbles. Each lane is
// delayed by its place in its chain, as the DSPs' cascades require. Row m computes everything m cycles after row 0, and
// passes the weights on to row m + 1.
//
// These are cycles of dsp_clk, which is clk itself or twice as fast (DSP_CLOCK 2). With DSP_CLOCK 2, a DSP multiplies
// for two groups of columns within a cycle of clk: the values stay the same for both halves, and the weights alternate.
// The interface of this module does not depend on it.
module pe_array
    import systolic_geometry::*;
#(
    parameter bit INSTANTIATED = 1
) (
    input logic clk,
    input logic dsp_clk,  // every DSP_CLOCK-th edge is an edge of clk
    input logic reset,
    input logic start,
    input number_t steps,  // steps per position
    input logic nibbles,  // the lanes are nibbles of pixels
    input logic activations_valid,
    output logic activations_ready,
    input word_t [ROWS-1:0][POSITIONS-1:0] activations,
    input logic weights_valid,
    output logic weights_ready,
    input logic [LANES*COLUMNS-1:0][VALUE_BITS-1:0] weights,  // [lane][column]
    output logic sums_valid,  // for all rows together
    input logic sums_ready,
    output sums_t [ROWS-1:0][POSITIONS-1:0] sums
);
    localparam bit SIX = PACK_COLUMNS == 3;
    // Cycles from lane 0's operands to its partial sums. If the clocks differ, there are further registers before and
    // after the DSPs. With six products, there is a register before the DSP, an adder tree for the even and one for the
    // odd lanes, and an adder for both.
    localparam int LATENCY = SIX ? 6 + tree_levels(LANES / 2) : DSP_CLOCK == 1 ? PACK_CHAIN + 4 : PACK_CHAIN / 2 + 5;
    localparam int IN_FLIGHT = LATENCY + 2;  // limit for the positions of a row between its step and its FIFO
    localparam int ROW_WAIT = (ROWS - 1 + DSP_CLOCK - 1) / DSP_CLOCK + 5;  // the first row waits for the last one

    countdown_t position_steps;
    logic issue, first;
    // The FIFOs of all rows fill and drain alike, the first row's first, so that its room is the room of all.
    // verilator lint_off UNUSEDSIGNAL
    logic [ROWS-1:0] room;
    // verilator lint_on UNUSEDSIGNAL
    logic [ROWS-1:0] row_valid;
    assign issue = activations_valid && weights_valid && room[0];
    assign activations_ready = issue;
    assign weights_ready = issue;
    assign sums_valid = &row_valid;

    always_ff @(posedge clk) begin
        if (reset || start) begin
            position_steps <= start_countdown(steps);
            first <= 1'b1;
        end else if (issue) begin
            position_steps <= next_countdown(position_steps);
            first <= position_steps.last;
        end
    end

    logic [ROWS-1:0][2:0] control;
    delay #(.WIDTH(3), .CYCLES(LATENCY)) issued (
        .clk, .in_data({issue && !reset, first, position_steps.last}), .out_data(control[0]));

    // verilator lint_off UNUSEDSIGNAL
    logic second_half;
    // verilator lint_on UNUSEDSIGNAL
    if (DSP_CLOCK == 1) begin : single_clock
        assign second_half = 1'b0;
    end else begin : double_clock
        clock_half phase (.clk, .dsp_clk, .reset, .second_half);
    end

    localparam int LANE_WEIGHT_BITS = SIX ? COLUMNS / 3 * 18 : COLUMNS / DSP_CLOCK * VALUE_BITS;  // bits per lane
    logic [ROWS-1:0][LANES-1:0][LANE_WEIGHT_BITS-1:0] row_weights;
    for (genvar l = 0; l < LANES; l++) begin : skewed
        if (SIX) begin : threes
            pack_weights lane (.clk, .weights(weights[l*COLUMNS+:COLUMNS]), .threes(row_weights[0][l]));
        end else begin : distributed
            distribute_weights #(.PLACE(place_in_chain(l))) lane (
                .clk, .dsp_clk, .second_half, .weights(weights[l*COLUMNS+:COLUMNS]), .distributed(row_weights[0][l]));
        end
    end

    for (genvar m = 0; m < ROWS; m++) begin : rows
        logic [POSITIONS-1:0][LANES-1:0][VALUE_BITS-1:0] values;
        for (genvar p = 0; p < POSITIONS; p++) begin : positions
            for (genvar l = 0; l < LANES; l++) begin : lanes
                operand #(.WIDTH(VALUE_BITS), .STEPS(m + place_in_chain(l) + int'(SIX))) lane (
                    .clk, .dsp_clk, .in_data(activations[m][p][l*VALUE_BITS+:VALUE_BITS]), .out_data(values[p][l]));
            end
        end
        if (m > 0) begin : below
            always_ff @(posedge dsp_clk) row_weights[m] <= row_weights[m-1];
            // With DSP_CLOCK 2, a row that is half a cycle late shares the cycle of the next row's sums.
            if (m % DSP_CLOCK == DSP_CLOCK - 1) begin : later
                always_ff @(posedge clk) control[m] <= control[m-1];
            end else begin : together
                assign control[m] = control[m-1];
            end
        end
        logic row_sums_valid;
        sums_t [POSITIONS-1:0] row_sums;
        if (SIX) begin : threes
            pe_row_six row (
                .clk, .control(control[m]), .nibbles, .weights(row_weights[m]), .values, .sums_valid(row_sums_valid),
                .sums(row_sums));
        end else begin : chains
            pe_row #(.INSTANTIATED(INSTANTIATED), .ROW(m)) row (
                .clk, .dsp_clk, .control(control[m]), .nibbles, .weights(row_weights[m]), .values,
                .sums_valid(row_sums_valid), .sums(row_sums));
        end
        fifo #(.WIDTH(POSITIONS * COLUMNS * SUM_BITS), .DEPTH(IN_FLIGHT + ROW_WAIT), .SLACK(IN_FLIGHT)) complete (
            .clk, .reset, .in_valid(row_sums_valid), .in_ready(room[m]), .in_data(row_sums),
            .out_valid(row_valid[m]), .out_ready(sums_valid && sums_ready), .out_data(sums[m]));
    end
endmodule

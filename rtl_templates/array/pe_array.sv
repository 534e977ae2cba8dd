// The PE array: ROWS output rows × COLUMNS output channels × LANES input channels a cycle, output-stationary. At 4 bits
// POSITIONS neighbouring positions of a row share every DSP. Where PACK_COLUMNS is 3, six products do (pe_row_six).
//
// A step is taken when its activations and its weights are there and the FIFOs of sums have room for whatever is under
// way: so nothing inside stalls, and cycles without a step are bubbles. Each lane is delayed by its place in its chain, as
// the DSPs' cascades take it; row m takes everything m cycles after row 0, and hands the weights on to row m + 1.
//
// These are cycles of dsp_clk: clk itself, or twice as fast (DSP_CLOCK 2). Then a DSP multiplies for two groups of columns
// within a cycle of clk: the same values stay for both halves, and the weights take turns. Nothing outside this module
// knows of it.
module pe_array
    import systolic_geometry::*;
#(
    parameter bit INSTANTIATED = 1
) (
    input logic clk,
    input logic dsp_clk,  // its every DSP_CLOCK-th edge is one of clk
    input logic reset,
    input logic start,
    input number_t steps,  // of a position
    input logic nibbles,  // the lanes are nibbles of pixels
    input logic activations_valid,
    output logic activations_ready,
    input word_t [ROWS-1:0][POSITIONS-1:0] activations,
    input logic weights_valid,
    output logic weights_ready,
    input logic [LANES*COLUMNS-1:0][VALUE_BITS-1:0] weights,  // [lane][column]
    output logic sums_valid,  // of all rows
    input logic sums_ready,
    output sums_t [ROWS-1:0][POSITIONS-1:0] sums
);
    localparam bit SIX = PACK_COLUMNS == 3;
    // From lane 0 to the parts of its products: where the clocks differ, further registers before and behind the DSPs; of
    // six products a register before, adders of three for the lanes of either kind, and one for both kinds.
    localparam int LATENCY = SIX ? 6 + levels_of(LANES / 2) : DSP_CLOCK == 1 ? PACK_CHAIN + 4 : PACK_CHAIN / 2 + 5;
    localparam int UNDER_WAY = LATENCY + 2;  // positions of a row between a step and its FIFO, at most
    localparam int WAITING = (ROWS - 1 + DSP_CLOCK - 1) / DSP_CLOCK + 5;  // the first row waits for the last one

    countdown_t left;
    logic issue, first;
    // All rows' FIFOs are filled and emptied alike, the first row's first.
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
            left <= begun(steps);
            first <= 1'b1;
        end else if (issue) begin
            left <= counted(left);
            first <= left.last;
        end
    end

    logic [ROWS-1:0][2:0] control;
    delay #(.WIDTH(3), .CYCLES(LATENCY)) issued (
        .clk, .in_data({issue && !reset, first, left.last}), .out_data(control[0]));

    // verilator lint_off UNUSEDSIGNAL
    logic second;
    // verilator lint_on UNUSEDSIGNAL
    if (DSP_CLOCK == 1) begin : alike
        assign second = 1'b0;
    end else begin : doubled
        halves phase (.clk, .dsp_clk, .reset, .second);
    end

    localparam int DEALT_BITS = SIX ? COLUMNS / 3 * 18 : COLUMNS / DSP_CLOCK * VALUE_BITS;  // of a lane
    logic [ROWS-1:0][LANES-1:0][DEALT_BITS-1:0] row_weights;
    for (genvar l = 0; l < LANES; l++) begin : skewed
        if (SIX) begin : threes
            pack_weights lane (.clk, .weights(weights[l*COLUMNS+:COLUMNS]), .threes(row_weights[0][l]));
        end else begin : dealt
            deal_weights #(.PLACE(place_in_chain(l))) lane (
                .clk, .dsp_clk, .second, .weights(weights[l*COLUMNS+:COLUMNS]), .dealt(row_weights[0][l]));
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
            // Sums of a row that is half a cycle late are taken with those of the next one.
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
        fifo #(.WIDTH(POSITIONS * COLUMNS * SUM_BITS), .DEPTH(UNDER_WAY + WAITING), .SLACK(UNDER_WAY)) complete (
            .clk, .reset, .in_valid(row_sums_valid), .in_ready(room[m]), .in_data(row_sums),
            .out_valid(row_valid[m]), .out_ready(sums_valid && sums_ready), .out_data(sums[m]));
    end
endmodule

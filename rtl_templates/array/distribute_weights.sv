// Delays one lane's weights of a step (one cycle of the array) by PLACE cycles of the DSPs' clock, for the first row of
// PEs. At the fabric's clock, the weights of all columns are output together. At twice the fabric's clock, one half of
// the columns follows the other. The columns then alternate in groups of PACK_COLUMNS, which share a DSP: the first
// group is output in the first half of the fabric's cycle, the second group in the second half.
module distribute_weights
    import systolic_geometry::*;
#(
    parameter int PLACE = 0
) (
    input logic clk,
    input logic dsp_clk,
    // verilator lint_off UNUSEDSIGNAL
    input logic second_half,
    // verilator lint_on UNUSEDSIGNAL
    input logic [COLUMNS-1:0][VALUE_BITS-1:0] weights,
    output logic [COLUMNS/DSP_CLOCK-1:0][VALUE_BITS-1:0] distributed
);
    localparam int WIDTH = COLUMNS / DSP_CLOCK * VALUE_BITS;

    if (DSP_CLOCK == 1) begin : single_clock
        operand #(.WIDTH(WIDTH), .STEPS(PLACE)) late (.clk, .dsp_clk, .in_data(weights), .out_data(distributed));
    end else begin : double_clock
        logic [COLUMNS-1:0][VALUE_BITS-1:0] crossing;
        logic [COLUMNS/2-1:0][VALUE_BITS-1:0] chosen;
        delay #(.WIDTH(2 * WIDTH), .CYCLES(1 + PLACE / 2)) whole (.clk, .in_data(weights), .out_data(crossing));
        for (genvar n = 0; n < COLUMNS / 2; n++) begin : columns
            localparam int FIRST = n / PACK_COLUMNS * 2 * PACK_COLUMNS + n % PACK_COLUMNS;
            always_ff @(posedge dsp_clk) chosen[n] <= second_half ? crossing[FIRST+PACK_COLUMNS] : crossing[FIRST];
        end
        delay #(.WIDTH(WIDTH), .CYCLES(PLACE % 2)) rest (.clk(dsp_clk), .in_data(chosen), .out_data(distributed));
    end
endmodule

// Delays an operand of a row's DSPs by STEPS cycles of their clock. If that clock is twice the fabric's, whole cycles
// of the fabric are delayed in registers of clk, and the rest plus one cycle in registers of dsp_clk. So the path
// between the clocks runs from register to register, and has half a cycle of the fabric.
module operand
    import systolic_geometry::*;
#(
    parameter int WIDTH = 8,
    parameter int STEPS = 0
) (
    input logic clk,
    input logic dsp_clk,
    input logic [WIDTH-1:0] in_data,
    output logic [WIDTH-1:0] out_data
);
    if (DSP_CLOCK == 1) begin : single_clock
        logic unused;
        assign unused = clk;
        delay #(.WIDTH(WIDTH), .CYCLES(STEPS)) late (.clk(dsp_clk), .in_data, .out_data);
    end else begin : double_clock
        logic [WIDTH-1:0] crossing;
        delay #(.WIDTH(WIDTH), .CYCLES(1 + STEPS / 2)) whole (.clk, .in_data, .out_data(crossing));
        delay #(.WIDTH(WIDTH), .CYCLES(1 + STEPS % 2)) rest (.clk(dsp_clk), .in_data(crossing), .out_data);
    end
endmodule

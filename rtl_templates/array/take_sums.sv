// Transfers a chain's sums to the fabric's clock. If the DSPs' clock is twice the fabric's, a chain gives two sums per
// cycle of clk. Registers of the DSPs' clock hold the first sum, and both are taken at the same edge of clk. In odd
// rows (ODD), whose delay is an odd number of DSP cycles, the sums arrive half a cycle of clk earlier relative to that
// edge.
module take_sums
    import systolic_geometry::*;
#(
    parameter int WIDTH = 36,
    parameter bit ODD = 0
) (
    input logic clk,
    input logic dsp_clk,
    input logic [WIDTH-1:0] sum,
    output logic [DSP_CLOCK-1:0][WIDTH-1:0] sums
);
    if (DSP_CLOCK == 1) begin : alike
        logic unused;
        assign unused = clk ^ dsp_clk;
        assign sums = sum;
    end else begin : doubled
        logic [WIDTH-1:0] past;
        always_ff @(posedge dsp_clk) past <= sum;
        if (ODD) begin : odd
            logic [WIDTH-1:0] earlier;
            always_ff @(posedge dsp_clk) earlier <= past;
            always_ff @(posedge clk) sums <= {past, earlier};
        end else begin : even
            always_ff @(posedge clk) sums <= {sum, past};
        end
    end
endmodule

// Transfers a chain's sums to the fabric's clock. If the DSPs' clock is twice the fabric's, a chain gives two sums per
// cycle of clk. Registers of the DSPs' clock hold the first sum, and both are taken at the same edge of clk. In odd
// rows (ODD), whose delay is an odd number of DSP cycles, the sums arrive half a cycle of clk earlier relative to that
// edge.
module capture_sums
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
    if (DSP_CLOCK == 1) begin : single_clock
        logic unused;
        assign unused = clk ^ dsp_clk;
        assign sums = sum;
    end else begin : double_clock
        logic [WIDTH-1:0] previous_sum;
        always_ff @(posedge dsp_clk) previous_sum <= sum;
        if (ODD) begin : odd
            logic [WIDTH-1:0] older_sum;
            always_ff @(posedge dsp_clk) older_sum <= previous_sum;
            always_ff @(posedge clk) sums <= {previous_sum, older_sum};
        end else begin : even
            always_ff @(posedge clk) sums <= {sum, previous_sum};
        end
    end
endmodule

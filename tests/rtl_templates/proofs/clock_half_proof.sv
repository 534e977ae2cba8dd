// Bound into clock_half. From four edges of dsp_clk after any reset on, ``second`` is 1 before an edge of clk and 0
// before the edge of dsp_clk in the middle.
module clock_half_proof (
    input logic clk,
    input logic dsp_clk,
    input logic reset,
    input logic second_half
);
    logic began = 1'b0, was_clk, was_reset;
    logic [2:0] edges;  // since a reset
    always_ff @(posedge dsp_clk) begin
        began <= 1'b1;
        {was_clk, was_reset} <= {clk, reset};
        edges <= reset ? '0 : edges == 4 ? edges : edges + 1'b1;
    end
    always_comb begin
        // Every second edge of dsp_clk is an edge of clk, and registers of clk keep their outputs in between.
        if (!began) assume (edges == 0);
        if (began) assume (clk == !was_clk);
        if (began && clk) assume (reset == was_reset);
    end
    always_comb if (began) begin
        assert (edges <= 4);
        if (edges == 4) assert (second_half == clk);
    end
endmodule
bind clock_half clock_half_proof proof (.*);

// Distinguishes the halves of a cycle of clk. dsp_clk is twice as fast, and every second edge of it is an edge of clk.
// ``second_half`` is 0 before the edge in the middle of the cycle and 1 before the edge of clk. It depends only on
// ``toggle``, which toggles at edges of clk and is sampled half a cycle later. So it is right for any history of both
// clocks and for any time at which the reset ends.
module clock_half (
    input logic clk,
    input logic dsp_clk,
    input logic reset,
    (* max_fanout = 64 *) output logic second_half
);
    logic toggle, sampled_toggle;
    always_ff @(posedge clk) toggle <= !toggle && !reset;
    always_ff @(posedge dsp_clk) begin
        sampled_toggle <= toggle;
        second_half <= toggle != sampled_toggle;
    end
endmodule

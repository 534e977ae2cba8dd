// Distinguishes the halves of a cycle of clk. dsp_clk is twice as fast, and every second edge of it is an edge of clk.
// ``second`` is 0 before the edge in the middle of the cycle and 1 before the edge of clk. It depends only on ``turn``,
// which toggles at edges of clk and is sampled half a cycle later. So it is right for any history of both clocks and
// for any time at which the reset ends.
module halves (
    input logic clk,
    input logic dsp_clk,
    input logic reset,
    (* max_fanout = 64 *) output logic second
);
    logic turn, seen;
    always_ff @(posedge clk) turn <= !turn && !reset;
    always_ff @(posedge dsp_clk) begin
        seen <= turn;
        second <= turn != seen;
    end
endmodule

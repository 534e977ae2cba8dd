// Which half of the fabric's cycle comes to its end at the next edge of dsp_clk, whose every second edge is one of clk:
// ``second`` is 0 before the edge in the middle and 1 before that of clk. It follows from ``turn`` alone, which changes at
// edges of clk and is seen anew half a cycle later: whatever both clocks did before, and whenever a reset ended.
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

// Bound into distribute_weights, at twice the clock. Half of a cycle's columns get their weights PLACE + 3 edges of
// dsp_clk after the first half of the cycle. The others get them PLACE + 3 edges after the second half, in the order of
// the columns. ``operand`` has the same delay, so that weights meet the values of their step.
module distribute_weights_proof
    import systolic_geometry::*;
#(
    parameter int PLACE = 0
) (
    input logic clk,
    input logic dsp_clk,
    input logic second_half,
    input logic [COLUMNS-1:0][VALUE_BITS-1:0] weights,
    input logic [COLUMNS/2-1:0][VALUE_BITS-1:0] distributed
);
    localparam int LATE = PLACE + 3;
    logic began = 1'b0;
    logic [LATE:0][COLUMNS-1:0][VALUE_BITS-1:0] past;  // weights of 0, 1, … edges before
    logic [LATE:0] past_clk, known;
    always_comb past[0] = weights;
    always_comb past_clk[0] = clk;
    always_comb known[0] = began;
    always_ff @(posedge dsp_clk) begin
        began <= 1'b1;
        for (int i = 1; i <= LATE; i++) begin
            past[i] <= past[i-1];
            past_clk[i] <= past_clk[i-1];
            known[i] <= known[i-1];
        end
    end
    always_comb begin
        assume (dsp_clk);  // every step of the solver is an edge of dsp_clk
        assume (second_half == clk);  // as ``halves`` drives it
        if (!began) assume (known == '0);
        if (known[1]) assume (clk == !past_clk[1]);
        if (known[1] && clk) assume (weights == past[1]);
    end
    always_comb begin
        for (int i = 1; i <= LATE; i++) assert (known[i-1] || !known[i]);
        if (known[LATE])
            for (int n = 0; n < COLUMNS; n++)  // a pair of neighbours that may share a DSP stays together
                if (past_clk[LATE] == (n / PACK_COLUMNS % 2 == 1))
                    assert (distributed[n/(2*PACK_COLUMNS)*PACK_COLUMNS+n%PACK_COLUMNS] == past[LATE][n]);
    end
endmodule
bind distribute_weights distribute_weights_proof #(.PLACE(PLACE)) proof (.*);

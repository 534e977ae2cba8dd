// Bound into deal_weights at twice the clock: PLACE + 3 edges of dsp_clk after the first half of a cycle come the first
// weights of that cycle's columns, PLACE + 3 after the second half the others, in the order of the columns. It is the
// delay of ``operand``, so that weights meet the values of their step.
module deal_weights_proof
    import systolic_geometry::*;
#(
    parameter int PLACE = 0
) (
    input logic clk,
    input logic dsp_clk,
    input logic second,
    input logic [COLUMNS-1:0][VALUE_BITS-1:0] weights,
    input logic [COLUMNS/2-1:0][VALUE_BITS-1:0] dealt
);
    localparam int LATE = PLACE + 3;
    logic began = 1'b0;
    logic [LATE:0][COLUMNS-1:0][VALUE_BITS-1:0] past;  // weights that many edges before
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
        assume (dsp_clk);  // every step is an edge of it
        assume (second == clk);  // as ``halves`` tells it
        if (!began) assume (known == '0);
        if (known[1]) assume (clk == !past_clk[1]);
        if (known[1] && clk) assume (weights == past[1]);
    end
    always_comb begin
        for (int i = 1; i <= LATE; i++) assert (known[i-1] || !known[i]);
        if (known[LATE])
            for (int n = 0; n < COLUMNS; n++)  // a pair of neighbours that may share a DSP goes together
                if (past_clk[LATE] == (n / PACK_COLUMNS % 2 == 1))
                    assert (dealt[n/(2*PACK_COLUMNS)*PACK_COLUMNS+n%PACK_COLUMNS] == past[LATE][n]);
    end
endmodule
bind deal_weights deal_weights_proof #(.PLACE(PLACE)) proof (.*);

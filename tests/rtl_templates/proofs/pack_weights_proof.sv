// Bound into pack_weights. Three weights of −7…7 are output a cycle later as w2 · 2^14 + w1 · 2^7 + w0. The 18 bits
// hold every such number.
module pack_weights_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic [COLUMNS-1:0][VALUE_BITS-1:0] weights,
    input logic [COLUMNS/3-1:0][17:0] threes
);
    logic began = 1'b0;
    logic [COLUMNS-1:0][VALUE_BITS-1:0] was;
    function automatic int of(int column);
        return 32'(signed'(was[column]));
    endfunction
    always_ff @(posedge clk) begin
        began <= 1'b1;
        was <= weights;
    end
    always_comb for (int n = 0; n < COLUMNS; n++) assume (weights[n] != {1'b1, (VALUE_BITS - 1)'(0)});
    always_comb if (began)
        for (int t = 0; t < COLUMNS / 3; t++)
            assert (32'(signed'(threes[t])) == of(3 * t + 2) * 16384 + of(3 * t + 1) * 128 + of(3 * t));
endmodule
bind pack_weights pack_weights_proof proof (.*);

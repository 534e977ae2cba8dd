// Packs one lane's weights of a step (one cycle of the array) in threes, as a DSP takes them: w2 · 2^14 + w1 · 2^7 +
// w0, one cycle later. This is done once for all rows, which pass the packed weights on. Weights of −7…7 fit into the
// 18 bits of the DSP's port.
module pack_weights
    import systolic_geometry::*;
(
    input logic clk,
    input logic [COLUMNS-1:0][VALUE_BITS-1:0] weights,
    output logic [COLUMNS/3-1:0][17:0] threes
);
    for (genvar t = 0; t < COLUMNS / 3; t++) begin : columns
        always_ff @(posedge clk)
            threes[t] <= (18'(signed'(weights[3*t+2])) <<< 14) + (18'(signed'(weights[3*t+1])) <<< 7)
                + 18'(signed'(weights[3*t]));
    end
endmodule

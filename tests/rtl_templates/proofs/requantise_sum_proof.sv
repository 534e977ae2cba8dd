// Bound into requantise_sum. The shifted value is (sum + bias) · m, with m = ``negative`` if sum + bias < 0, else
// ``multiplier``. With a late offset it is sum · m + offset, where m has the multiplier's sign. Each stage is proved
// from the stage before. It uses the sum of four cycles before, the constants of three and the offset of one.
module requantise_sum_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic signed [SUM_BITS-1:0] sum,
    input channel_t constants,
    input logic signed [47:0] offset,
    // inside
    input logic signed [BIASED_BITS-1:0] biased,
    input logic signed [16:0] factor,
    input logic signed [48:0] product,
    input logic signed [48:0] product_with_offset
);
    logic [3:0] began = '0;
    logic late;
    logic signed [SUM_BITS-1:0] s1_sum;
    logic signed [BIASED_BITS-1:0] s1_wide, s1_biased, s2_biased;
    logic signed [16:0] s2_factor;
    logic signed [48:0] s3_product, s4_product, s5_offered;
    assign late = LATE_OFFSETS > 0 && constants.late;
    assign s1_wide = s1_sum;  // with its sign
    assign s1_biased = late ? s1_wide : s1_wide + constants.bias;
    always_ff @(posedge clk) begin
        began <= {began[2:0], 1'b1};
        s1_sum <= sum;
        s2_biased <= s1_biased;
        if (late) s2_factor <= {constants.late_sign, constants.multiplier};
        else s2_factor <= {1'b0, s1_biased[BIASED_BITS-1] ? constants.negative_multiplier : constants.multiplier};
        s3_product <= biased * factor;
        s4_product <= s3_product;
        s5_offered <= product + 49'(offset);
    end
    always_comb begin
        if (began[1]) assert (biased == s2_biased && factor == s2_factor);
        if (began[1]) assert (product == s4_product);
        if (began[0]) assert (product_with_offset == (LATE_OFFSETS == 0 ? product : s5_offered));
    end
endmodule
bind requantise_sum requantise_sum_proof proof (.*);

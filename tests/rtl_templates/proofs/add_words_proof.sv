// Bound into add_words. In every lane the sum is result · own + other · factor + offset, shifted and then saturated to
// two limits. Each of the five stages is proved from the values of the stage before. With ``to_parity`` the lowest 12
// bits count as zeros, and the shift rounds: a half goes to the even integer or, with ``odd``, to the odd integer.
module add_words_proof
    import systolic_geometry::*;
#(
    parameter int PART_BITS = 37,
    parameter int PARTS = 1,
    parameter int PART = 4
) (
    input logic clk,
    input addition_t by,
    input word_t result,
    input word_t other,
    input word_t sum,
    // inside the only lane
    input logic [PARTS-1:0][PART_BITS-1:0] own_product,
    input logic [PARTS-1:0][PART_BITS-1:0] other_product,
    input logic [PARTS-1:0][PART_BITS-1:0] product_sum,
    input logic signed [49:0] rounded,
    input logic signed [49:0] shifted,
    input logic rounds_up
);
    logic began = 1'b0;
    logic [PARTS-1:0][PART_BITS-1:0] s1_own, s1_factored, s2_both;
    logic signed [49:0] whole, counted, s3_rounded, s4_shifted;
    logic signed [50:0] with_half, up, nearest, s5_value;
    logic s4_rises;
    word_t s5_sum;
    // The lower parts of a value are unsigned, and the uppermost part has the sign.
    function automatic logic signed [PART_BITS-1:0] product(number_t factor, logic [PART-1:0] part, logic ends);
        automatic logic signed [PART:0] value = {ends && part[PART-1], part};
        automatic logic signed [PART+$bits(number_t):0] narrow = value * factor;
        return PART_BITS'(narrow);
    endfunction
    always_comb begin
        whole = 50'(by.offset);
        for (int p = 0; p < PARTS; p++) whole = whole + (50'(signed'(product_sum[p])) << (PART * p));
        counted = rounded;
        if (by.to_parity) counted[11:0] = 0;
        with_half = 51'(counted) + (51'(1) << (by.shift - 6'd1));
        up = with_half >>> by.shift;
        nearest = up - 51'((up <<< by.shift) == with_half && up[0] != by.odd);
        s5_value = 51'(shifted) + 51'(rounds_up);
        assume (by.least <= by.greatest && (!by.to_parity || (by.shift >= 1 && by.shift <= 47)));
    end
    always_ff @(posedge clk) begin
        began <= 1'b1;
        for (int p = 0; p < PARTS; p++) begin
            s1_own[p] <= product(by.own, result[PART*p+:PART], p == PARTS - 1);
            s1_factored[p] <= product(by.other, other[PART*p+:PART], p == PARTS - 1);
            s2_both[p] <= own_product[p] + other_product[p];
        end
        s3_rounded <= whole;
        s4_shifted <= counted >>> by.shift;
        s4_rises <= by.to_parity && nearest != 51'(counted >>> by.shift);
        s5_sum <= VALUE_BITS'(s5_value < 51'(by.least) ? 51'(by.least)
            : s5_value > 51'(by.greatest) ? 51'(by.greatest) : s5_value);
    end
    always_comb if (began) begin
        assert (own_product == s1_own && other_product == s1_factored);
        assert (product_sum == s2_both);
        assert (rounded == s3_rounded);
        assert (shifted == s4_shifted && rounds_up == s4_rises);
        assert (sum == s5_sum);
    end
endmodule
bind add_words add_words_proof #(.PART_BITS(PART_BITS), .PARTS(PARTS), .PART(PART)) proof (.*,
    .own_product(lanes[0].own_product), .other_product(lanes[0].other_product), .product_sum(lanes[0].product_sum), .rounded(lanes[0].rounded),
    .shifted(lanes[0].shifted), .rounds_up(lanes[0].rounds_up));

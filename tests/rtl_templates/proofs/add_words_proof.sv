// Bound into add_words: in every lane result · own + other · factor + offset, shifted, then the nearer limit where it lies
// beyond one: each stage of what the one before has, five from a word to its sum.
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
    // inside, of the only lane
    input logic [PARTS-1:0][PART_BITS-1:0] own,
    input logic [PARTS-1:0][PART_BITS-1:0] factored,
    input logic [PARTS-1:0][PART_BITS-1:0] both,
    input logic signed [49:0] rounded,
    input logic signed [49:0] shifted
);
    logic began = 1'b0;
    logic [PARTS-1:0][PART_BITS-1:0] s1_own, s1_factored, s2_both;
    logic signed [49:0] whole, s3_rounded, s4_shifted;
    word_t s5_sum;
    // Of a value the lower parts count as they are, the uppermost one has the sign.
    function automatic logic signed [PART_BITS-1:0] product(number_t factor, logic [PART-1:0] part, logic ends);
        automatic logic signed [PART:0] value = {ends && part[PART-1], part};
        automatic logic signed [PART+$bits(number_t):0] narrow = value * factor;
        return PART_BITS'(narrow);
    endfunction
    always_comb begin
        whole = 50'(by.offset);
        for (int p = 0; p < PARTS; p++) whole = whole + (50'(signed'(both[p])) << (PART * p));
    end
    always_ff @(posedge clk) begin
        began <= 1'b1;
        for (int p = 0; p < PARTS; p++) begin
            s1_own[p] <= product(by.own, result[PART*p+:PART], p == PARTS - 1);
            s1_factored[p] <= product(by.other, other[PART*p+:PART], p == PARTS - 1);
            s2_both[p] <= own[p] + factored[p];
        end
        s3_rounded <= whole;
        s4_shifted <= rounded >>> by.shift;
        s5_sum <= VALUE_BITS'(shifted < 50'(by.least) ? 50'(by.least)
            : shifted > 50'(by.greatest) ? 50'(by.greatest) : shifted);
    end
    always_comb if (began) begin
        assert (own == s1_own && factored == s1_factored);
        assert (both == s2_both);
        assert (rounded == s3_rounded);
        assert (shifted == s4_shifted);
        assert (sum == s5_sum);
    end
endmodule
bind add_words add_words_proof #(.PART_BITS(PART_BITS), .PARTS(PARTS), .PART(PART)) proof (.*,
    .own(lanes[0].own), .factored(lanes[0].factored), .both(lanes[0].both), .rounded(lanes[0].rounded),
    .shifted(lanes[0].shifted));

// number · factor without DSPs, in two cycles: a digit −2 … 2 for every two bits of the factor (Booth), so that adding a
// digit's multiple is one LUT a bit, which takes the bit of the sum so far, two bits of the number and three of the factor.
// The lower half of the digits is added up beside the upper one, then both.
module lut_product #(
    parameter int NUMBER_BITS = 32,
    parameter int FACTOR_BITS = 17
) (
    input logic clk,
    input logic signed [NUMBER_BITS-1:0] number,
    input logic signed [FACTOR_BITS-1:0] factor,
    output logic signed [NUMBER_BITS+FACTOR_BITS-1:0] product
);
    localparam int DIGITS = (FACTOR_BITS + 1) / 2;
    localparam int LOWER = DIGITS / 2;
    localparam int WIDE = NUMBER_BITS + 2;  // of a multiple, and of any sum of them whose lower bits have left it

    logic signed [2*DIGITS:0] bits;  // below the lowest bit is a 0
    assign bits = {(2 * DIGITS)'(factor), 1'b0};

    // A quarter of the sum ``so_far``, and a digit's multiple of the number; what a negative digit turns round is 1 short.
    function automatic logic signed [WIDE-1:0] with_digit(
        logic signed [WIDE-1:0] so_far, logic signed [NUMBER_BITS-1:0] of, logic [2:0] digit);
        automatic logic signed [WIDE-1:0] multiple = digit[1] ^ digit[0] ? WIDE'(of)
            : digit[2] ^ digit[1] ? WIDE'(of) <<< 1 : '0;
        return WIDE'(({so_far >>> 2, 1'b1} + {multiple ^ {WIDE{digit[2]}}, digit[2]}) >> 1);
    endfunction

    // Of each half the sum of its last digit, and below it two bits of each sum, which no later digit changes.
    localparam int UPPER_BITS = WIDE + 2 * (DIGITS - 1 - LOWER);
    logic [2*LOWER-1:0] lowest, s1_lowest;
    logic signed [WIDE-1:0] lower, s1_lower;
    logic signed [UPPER_BITS-1:0] upper, s1_upper;
    always_comb begin
        lower = '0;
        for (int k = 0; k < LOWER; k++) begin
            lower = with_digit(lower, number, bits[2*k+:3]);
            lowest[2*k+:2] = lower[1:0];
        end
    end
    always_comb begin
        automatic logic signed [WIDE-1:0] last = '0;
        for (int k = LOWER; k < DIGITS; k++) begin
            last = with_digit(last, number, bits[2*k+:3]);
            upper[2*(k-LOWER)+:2] = last[1:0];
        end
        upper[UPPER_BITS-1-:WIDE] = last;
    end
    always_ff @(posedge clk) begin
        s1_lowest <= lowest;
        s1_lower <= lower;
        s1_upper <= upper;
        product <= (NUMBER_BITS + FACTOR_BITS)'({s1_upper + UPPER_BITS'(s1_lower >>> 2), s1_lowest});
    end
endmodule

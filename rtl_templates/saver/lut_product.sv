// number · factor without DSPs, in two cycles: a digit −2 … 2 for every two bits of the factor (Booth), so that adding a
// digit's multiple is one LUT a bit, which takes the bit of the sum so far, two bits of the number and three of the factor.
// Each third of the digits is added up beside the others, then all three: no path is longer than a third's additions.
module lut_product #(
    parameter int NUMBER_BITS = 32,
    parameter int FACTOR_BITS = 17
) (
    input logic clk,
    input logic signed [NUMBER_BITS-1:0] number,
    input logic signed [FACTOR_BITS-1:0] factor,
    output logic signed [NUMBER_BITS+FACTOR_BITS-1:0] product
);
    localparam int THIRD = (FACTOR_BITS + 5) / 6;  // digits of a third
    localparam int WIDE = NUMBER_BITS + 2;  // of a multiple, and of any sum of them whose lower bits have left it
    localparam int PART_BITS = WIDE + 2 * (THIRD - 1);
    localparam int UPPER_BITS = NUMBER_BITS + FACTOR_BITS - 2 * THIRD;  // of the product, above what the first third decides

    logic signed [6*THIRD:0] bits;  // below the lowest bit is a 0
    assign bits = {(6 * THIRD)'(factor), 1'b0};

    // A quarter of the sum ``so_far``, and a digit's multiple of the number; what a negative digit turns round is 1 short.
    function automatic logic signed [WIDE-1:0] with_digit(
        logic signed [WIDE-1:0] so_far, logic signed [NUMBER_BITS-1:0] of, logic [2:0] digit);
        automatic logic signed [WIDE-1:0] multiple = digit[1] ^ digit[0] ? WIDE'(of)
            : digit[2] ^ digit[1] ? WIDE'(of) <<< 1 : '0;
        return WIDE'(({so_far >>> 2, 1'b1} + {multiple ^ {WIDE{digit[2]}}, digit[2]}) >> 1);
    endfunction

    // Of each third the sum of its last digit, and below it two bits of each sum, which no later digit changes.
    logic [2:0][PART_BITS-1:0] parts;
    logic signed [PART_BITS-1:0] first, second, third;
    always_comb begin
        for (int part = 0; part < 3; part++) begin
            automatic logic signed [WIDE-1:0] last = '0;
            for (int k = 0; k < THIRD; k++) begin
                last = with_digit(last, number, bits[2*(part*THIRD+k)+:3]);
                parts[part][2*k+:2] = last[1:0];
            end
            parts[part][PART_BITS-1-:WIDE] = last;
        end
    end
    always_ff @(posedge clk) begin
        {third, second, first} <= parts;
        product <= {
            UPPER_BITS'(first >>> (2 * THIRD)) + UPPER_BITS'(second) + (UPPER_BITS'(third) <<< (2 * THIRD)),
            first[2*THIRD-1:0]};
    end
endmodule

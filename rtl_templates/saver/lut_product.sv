// number · factor without DSPs, in two cycles. The factor is recoded into digits −2…2, one per two bits (radix-4
// Booth). Adding a digit's multiple takes one LUT per bit: its inputs are one bit of the sum so far, two bits of the
// number and three bits of the factor. The digits are summed in three parallel thirds, and then the thirds, so that the
// longest path has the additions of one third.
module lut_product #(
    parameter int NUMBER_BITS = 32,
    parameter int FACTOR_BITS = 17
) (
    input logic clk,
    input logic signed [NUMBER_BITS-1:0] number,
    input logic signed [FACTOR_BITS-1:0] factor,
    output logic signed [NUMBER_BITS+FACTOR_BITS-1:0] product
);
    localparam int THIRD = (FACTOR_BITS + 5) / 6;  // digits per third
    localparam int WIDE = NUMBER_BITS + 2;  // bits of a multiple, and of a running sum without its final lower bits
    localparam int PART_BITS = WIDE + 2 * (THIRD - 1);
    localparam int UPPER_BITS = NUMBER_BITS + FACTOR_BITS - 2 * THIRD;  // bits above the first third

    logic signed [6*THIRD:0] bits;  // a 0 is appended below the lowest bit, for the first digit
    assign bits = {(6 * THIRD)'(factor), 1'b0};

    // running_sum / 4 + digit · number. For a negative digit the multiple is inverted; the missing 1 is added by the
    // carry-in.
    function automatic logic signed [WIDE-1:0] add_digit(
        logic signed [WIDE-1:0] running_sum, logic signed [NUMBER_BITS-1:0] multiplicand, logic [2:0] digit);
        automatic logic signed [WIDE-1:0] multiple = digit[1] ^ digit[0] ? WIDE'(multiplicand)
            : digit[2] ^ digit[1] ? WIDE'(multiplicand) <<< 1 : '0;
        return WIDE'(({running_sum >>> 2, 1'b1} + {multiple ^ {WIDE{digit[2]}}, digit[2]}) >> 1);
    endfunction

    // Each third: the last running sum, and below it two bits of every running sum, which no later digit changes.
    logic [2:0][PART_BITS-1:0] parts;
    logic signed [PART_BITS-1:0] first, second, third;
    always_comb begin
        for (int part = 0; part < 3; part++) begin
            automatic logic signed [WIDE-1:0] last = '0;
            for (int k = 0; k < THIRD; k++) begin
                last = add_digit(last, number, bits[2*(part*THIRD+k)+:3]);
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

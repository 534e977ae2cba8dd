// What a position of a row of the array takes in a step, of two neighbouring words of the row buffer, the odd and the even
// one: a word, or STEP_PIXELS pixels from inside of one on. ``start`` counts pixels from the even word on; behind the odd one
// the even one comes again. Of each pixel, what is not ``inside_map`` is padding and holds ``around``. A byte p of a pixel
// enters as p at 16 bits, as p − 128 at 8, and at 4 as two values, each nibble less 8: the top bit of a value flipped.
module window
    import systolic_geometry::*;
(
    input word_t [1:0] words,
    input logic [$clog2(2*WORD_PIXELS)-1:0] start,
    input logic pixels,
    input logic [STEP_PIXELS-1:0] inside_map,
    // verilator lint_off UNUSEDSIGNAL
    input logic [15:0] around,
    // verilator lint_on UNUSEDSIGNAL
    output word_t values
);
    localparam int RAW_BITS = VALUE_BITS < 8 ? VALUE_BITS : 8;  // of a pixel in a value
    localparam int NIBBLES = VALUE_BITS < 8 ? 2 : 1;  // values of a byte

    // Turned round, so that a word begins with ``start``. At 16 bits a pixel's bytes lie closer than values do.
    word_t turned;
    assign turned = WORD_BITS'({words, words} >> {start, ($clog2(8 * PIXEL_BYTES))'(0)});

    always_comb begin
        for (int lane = 0; lane < LANES; lane++) begin
            automatic logic [VALUE_BITS-1:0] value = turned[lane*VALUE_BITS+:VALUE_BITS];
            if (VALUE_BITS > 8 && pixels) value = VALUE_BITS'(turned[lane*RAW_BITS+:RAW_BITS]);
            if (!inside_map[lane/PIXEL_LANES])
                value = VALUE_BITS'(pixels ? around >> (lane % NIBBLES * 4) : around);
            values[lane*VALUE_BITS+:VALUE_BITS] = value ^ {pixels && VALUE_BITS < 16, (VALUE_BITS - 1)'(0)};
        end
    end
endmodule

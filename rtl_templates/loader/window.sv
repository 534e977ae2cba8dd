// Selects the activations of one position and step from two neighbouring words of the row buffer, one of even and one
// of odd address: a whole word, or STEP_PIXELS pixels that may start within a word.
//
// ``start`` counts pixels from the even word on; the even word follows the odd word again. A pixel that is not
// ``inside_map`` is padding and has the value ``around``. A byte p of a pixel becomes p at 16 bits and p − 128 at 8
// bits. At 4 bits it becomes two values, each nibble minus 8. Both subtractions flip the top bit of a value.
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
    localparam int RAW_BITS = VALUE_BITS < 8 ? VALUE_BITS : 8;  // bits of a pixel per value
    localparam int NIBBLES = VALUE_BITS < 8 ? 2 : 1;  // values per byte

    // The two words are rotated so that the result begins at ``start``. At 16 bits, the bytes of a pixel are packed
    // more densely than values.
    word_t rotated_words;
    assign rotated_words = WORD_BITS'({words, words} >> {start, ($clog2(8 * PIXEL_BYTES))'(0)});

    always_comb begin
        for (int lane = 0; lane < LANES; lane++) begin
            automatic logic [VALUE_BITS-1:0] value = rotated_words[lane*VALUE_BITS+:VALUE_BITS];
            if (VALUE_BITS > 8 && pixels) value = VALUE_BITS'(rotated_words[lane*RAW_BITS+:RAW_BITS]);
            if (!inside_map[lane/PIXEL_LANES])
                value = VALUE_BITS'(pixels ? around >> (lane % NIBBLES * 4) : around);
            values[lane*VALUE_BITS+:VALUE_BITS] = value ^ {pixels && VALUE_BITS < 16, (VALUE_BITS - 1)'(0)};
        end
    end
endmodule

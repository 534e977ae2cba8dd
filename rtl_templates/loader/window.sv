// What a position of a row of the array takes in a step, of two neighbouring words of the row buffer: word ``low``, or
// the STEP_PIXELS pixels from pixel ``shift`` of both on. column: of the first value; columns outside of 0 … width − 1,
// and rows that do not exist, are padding and hold ``around``. A byte p of a pixel enters as p at 16 bits, as p − 128 at
// 8, and at 4 as two values, each nibble less 8: the top bit of a value flipped.
module window
    import systolic_geometry::*;
(
    input word_t low,
    input word_t high,
    input logic pixels,
    // verilator lint_off UNUSEDSIGNAL
    input number_t shift,
    input number_t column,
    input number_t width,
    input logic exists,
    input number_t around,
    // verilator lint_on UNUSEDSIGNAL
    output word_t values
);
    localparam int PIXEL_BITS = 8 * PIXEL_BYTES;
    localparam int SHIFT_BITS = $clog2(2 * WORD_BITS);
    localparam int RAW_BITS = VALUE_BITS < 8 ? VALUE_BITS : 8;  // of a pixel in a value
    localparam int NIBBLES = VALUE_BITS < 8 ? 2 : 1;  // values of a byte

    word_t shifted;
    assign shifted = WORD_BITS'({high, low} >> (SHIFT_BITS'(shift) << $clog2(PIXEL_BITS)));

    always_comb begin
        for (int lane = 0; lane < LANES; lane++) begin
            automatic number_t place = pixels ? column + lane / PIXEL_LANES : column;
            automatic logic inside_map = exists && place >= 0 && place < width;
            automatic logic [VALUE_BITS-1:0] value = low[lane*VALUE_BITS+:VALUE_BITS];
            if (pixels) value = VALUE_BITS'(shifted[lane*RAW_BITS+:RAW_BITS]);
            if (!inside_map) value = VALUE_BITS'(pixels ? around >>> (lane % NIBBLES * 4) : around);
            values[lane*VALUE_BITS+:VALUE_BITS] = value ^ {pixels && VALUE_BITS < 16, (VALUE_BITS - 1)'(0)};
        end
    end
endmodule

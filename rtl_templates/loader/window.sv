// What a row of the array takes in a step, of two neighbouring words of the row buffer: the first of them, or the
// STEP_PIXELS pixels from pixel ``shift`` on. column: of the first value; columns outside of 0 … width − 1, and rows
// that do not exist, are padding and hold ``around``. A byte p of a pixel enters as p − 128: the top bit flipped.
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

    word_t shifted;
    assign shifted = WORD_BITS'({high, low} >> (SHIFT_BITS'(shift) * SHIFT_BITS'(PIXEL_BITS)));

    always_comb begin
        for (int lane = 0; lane < LANES; lane++) begin
            automatic number_t place = pixels ? column + lane / PIXEL_LANES : column;
            automatic logic inside_map = exists && place >= 0 && place < width;
            automatic word_t from = pixels ? shifted : low;
            automatic logic [VALUE_BITS-1:0] value
                = inside_map ? from[lane*VALUE_BITS+:VALUE_BITS] : VALUE_BITS'(around);
            values[lane*VALUE_BITS+:VALUE_BITS] = value ^ {pixels, (VALUE_BITS - 1)'(0)};
        end
    end
endmodule

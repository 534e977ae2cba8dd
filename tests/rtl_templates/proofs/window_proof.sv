// Bound into window. A position takes the word that begins at ``start``. For pixels it takes STEP_PIXELS pixels from
// there on, byte for byte in order, and the even word follows the odd word. Padding has the value ``around``. A byte is
// unchanged at 16 bits, and reduced by 128 at 8 bits. At 4 bits it is split into two nibbles, the lower one first, each
// reduced by 8.
module window_proof
    import systolic_geometry::*;
(
    input word_t [1:0] words,
    input logic [$clog2(2*WORD_PIXELS)-1:0] start,
    input logic pixels,
    input logic [STEP_PIXELS-1:0] inside_map,
    input logic [15:0] around,
    input word_t values
);
    localparam int BYTES = 2 * WORD_BITS / 8;
    localparam int BYTE_LANES = VALUE_BITS < 8 ? 2 : 1;  // lanes that a byte of a pixel fills
    logic [BYTES-1:0][7:0] bytes;
    assign bytes = words;
    always_comb if (!pixels) assume (32'(start) % WORD_PIXELS == 0 && (inside_map == '0 || inside_map == '1));
    for (genvar lane = 0; lane < LANES; lane++) begin : lanes
        localparam int PIXEL = lane / PIXEL_LANES;
        localparam int PLACE = PIXEL * PIXEL_BYTES + lane % PIXEL_LANES / BYTE_LANES;
        logic [7:0] stored;  // byte of the pixel or of the padding
        logic [VALUE_BITS-1:0] value;
        word_t word;
        assign word = words[32'(start)/WORD_PIXELS];
        assign stored = bytes[(32'(start)*PIXEL_BYTES+PLACE)%BYTES];
        always_comb begin
            if (!pixels) value = inside_map[0] ? word[lane*VALUE_BITS+:VALUE_BITS] : VALUE_BITS'(around);
            else if (VALUE_BITS == 16) value = inside_map[PIXEL] ? VALUE_BITS'(stored) : VALUE_BITS'(around);
            else if (VALUE_BITS == 8) value = VALUE_BITS'((inside_map[PIXEL] ? stored : around[7:0]) - 8'd128);
            else value = VALUE_BITS'(((inside_map[PIXEL] ? stored : around[7:0]) >> (lane % 2 * 4)) - 8'd8);
        end
        always_comb assert (values[lane*VALUE_BITS+:VALUE_BITS] == value);
    end
endmodule
bind window window_proof proof (.*);

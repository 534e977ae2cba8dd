// A piecewise-linear function of 256 segments: y = start + ((slope · segment_offset + 128) >> 8). A value is shifted
// left by ``align_shift``, so that it is aligned to 16 bits. The upper 8 bits then select the segment, and the lower 8
// bits are ``segment_offset``. Without ``uses_table``, the output is the value itself. The latency is five cycles in
// both cases.
module look_up_segment
    import systolic_geometry::*;
#(
    parameter int SLOPE_BITS = 18,
    localparam int TABLE_BITS = $clog2(TABLE_DEPTH)
) (
    input logic clk,
    input logic write,
    input logic [TABLE_BITS-1:0] entry,
    input logic [RESULT_BITS-1:0] start,
    input logic [SLOPE_BITS-1:0] slope,
    input logic [3:0] align_shift,
    input logic uses_table,
    input logic [RESULT_BITS-1:0] value,
    output logic [RESULT_BITS-1:0] result
);
    localparam int STAGES = 4;  // stages before the result register
    logic [RESULT_BITS-1:0] aligned;
    logic [STAGES-1:0][RESULT_BITS-1:0] values;
    logic [7:0] segment_offset;
    always_ff @(posedge clk) begin
        aligned <= value << align_shift;
        segment_offset <= aligned[7:0];
        values <= {values[STAGES-2:0], value};
    end

    // If the table has an entry per value of more than 8 bits, the value itself is the address (align_shift is 8).
    logic [TABLE_BITS-1:0] place;
    assign place = TABLE_BITS > 8 && align_shift == 4'd8 ? values[0][TABLE_BITS-1:0] : TABLE_BITS'(aligned[15:8]);

    logic signed [RESULT_BITS-1:0] segment_start;
    logic signed [SLOPE_BITS-1:0] segment_slope;
    sdp_ram #(.WIDTH(SLOPE_BITS + RESULT_BITS), .DEPTH(TABLE_DEPTH), .STYLE(TABLE_MEMORY)) segments (
        .clk, .write, .write_address(entry), .write_data({slope, start}), .read(1'b1), .read_address(place),
        .read_data({segment_slope, segment_start}));

    // The half of the rounding is appended to ``start``, so that one addition suffices.
    // verilator lint_off UNUSEDSIGNAL
    logic signed [SLOPE_BITS+8:0] rise;
    logic [RESULT_BITS+7:0] line;
    // verilator lint_on UNUSEDSIGNAL
    logic [1:0][RESULT_BITS-1:0] segment_starts;
    lut_product #(.NUMBER_BITS(SLOPE_BITS), .FACTOR_BITS(9)) multiplier (
        .clk, .number(segment_slope), .factor({1'b0, segment_offset}), .product(rise));
    assign line = {segment_starts[1], 8'd128} + rise[RESULT_BITS+7:0];
    always_ff @(posedge clk) begin
        segment_starts <= {segment_starts[0], segment_start};
        result <= uses_table ? line[8+:RESULT_BITS] : values[STAGES-1];
    end
endmodule

// A piecewise-linear function of 256 segments: y = start + ((slope · along + 128) >> 8). A value is shifted left by
// ``places``, so that it is aligned to 16 bits. The upper 8 bits then select the segment, and the lower 8 bits are
// ``along``. Without ``looks_up``, the output is the value itself. The latency is five cycles in both cases.
module look_up_piece
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
    input logic [3:0] places,
    input logic looks_up,
    input logic [RESULT_BITS-1:0] value,
    output logic [RESULT_BITS-1:0] result
);
    localparam int LINES = 4;  // stages before the result register
    logic [RESULT_BITS-1:0] moved;
    logic [LINES-1:0][RESULT_BITS-1:0] values;
    logic [7:0] along;
    always_ff @(posedge clk) begin
        moved <= value << places;
        along <= moved[7:0];
        values <= {values[LINES-2:0], value};
    end

    // If the table has an entry per value of more than 8 bits, the value itself is the address (places is 8).
    logic [TABLE_BITS-1:0] place;
    assign place = TABLE_BITS > 8 && places == 4'd8 ? values[0][TABLE_BITS-1:0] : TABLE_BITS'(moved[15:8]);

    logic signed [RESULT_BITS-1:0] first;
    logic signed [SLOPE_BITS-1:0] rises;
    sdp_ram #(.WIDTH(SLOPE_BITS + RESULT_BITS), .DEPTH(TABLE_DEPTH), .STYLE(TABLE_MEMORY)) pieces (
        .clk, .write, .write_address(entry), .write_data({slope, start}), .read(1'b1), .read_address(place),
        .read_data({rises, first}));

    // The half of the rounding is appended to ``start``, so that one addition suffices.
    // verilator lint_off UNUSEDSIGNAL
    logic signed [SLOPE_BITS+8:0] risen;
    logic [RESULT_BITS+7:0] line;
    // verilator lint_on UNUSEDSIGNAL
    logic [1:0][RESULT_BITS-1:0] firsts;
    lut_product #(.NUMBER_BITS(SLOPE_BITS), .FACTOR_BITS(9)) multiplier (
        .clk, .number(rises), .factor({1'b0, along}), .product(risen));
    assign line = {firsts[1], 8'd128} + risen[RESULT_BITS+7:0];
    always_ff @(posedge clk) begin
        firsts <= {firsts[0], first};
        result <= looks_up ? line[8+:RESULT_BITS] : values[LINES-1];
    end
endmodule

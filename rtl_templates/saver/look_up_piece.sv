// A function as 256 pieces of lines: y = start + ((slope · along + 128) >> 8), with the piece in the upper 8 bits of a value
// that is moved up by ``places``, so that it begins where 16 bits do, and ``along`` it in the lower 8. Without ``looks_up``
// the value itself; in five cycles either way.
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
    localparam int LINES = 4;  // stages before the result
    logic [RESULT_BITS-1:0] moved;
    logic [LINES-1:0][RESULT_BITS-1:0] values;
    logic [7:0] along;
    always_ff @(posedge clk) begin
        moved <= value << places;
        along <= moved[7:0];
        values <= {values[LINES-2:0], value};
    end

    // A value with more bits than choose a piece is its own place; it begins where 8 bits do then.
    logic [TABLE_BITS-1:0] place;
    assign place = TABLE_BITS > 8 && places == 4'd8 ? values[0][TABLE_BITS-1:0] : TABLE_BITS'(moved[15:8]);

    logic signed [RESULT_BITS-1:0] first;
    logic signed [SLOPE_BITS-1:0] rises;
    sdp_ram #(.WIDTH(SLOPE_BITS + RESULT_BITS), .DEPTH(TABLE_DEPTH), .STYLE(TABLE_MEMORY)) pieces (
        .clk, .write, .write_address(entry), .write_data({slope, start}), .read(1'b1), .read_address(place),
        .read_data({rises, first}));

    // What the line rises from has the half below it, so that one addition does.
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

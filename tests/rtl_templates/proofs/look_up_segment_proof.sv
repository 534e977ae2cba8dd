// Bound into look_up_segment. A piece is written to its entry. It is read with a value's upper bits, while the lower
// bits go to the product. If the table has more entries than pieces, a value that needs no line is its own address. The
// result is the start of the piece plus the rounded product, or the value of five cycles before. The memory and the
// product in LUTs have proofs of their own.
module look_up_segment_proof
    import systolic_geometry::*;
#(
    parameter int SLOPE_BITS = 18,
    localparam int TABLE_BITS = $clog2(TABLE_DEPTH)
) (
    input logic clk,
    input logic [TABLE_BITS-1:0] entry,
    input logic [RESULT_BITS-1:0] start,
    input logic [SLOPE_BITS-1:0] slope,
    input logic [3:0] align_shift,
    input logic uses_table,
    input logic [RESULT_BITS-1:0] value,
    input logic [RESULT_BITS-1:0] result,
    // inside
    input logic [7:0] segment_offset,
    input logic signed [RESULT_BITS-1:0] segment_start,
    input logic signed [SLOPE_BITS+8:0] rise,
    input logic [TABLE_BITS-1:0] write_address,
    input logic [SLOPE_BITS+RESULT_BITS-1:0] write_data,
    input logic [TABLE_BITS-1:0] read_address
);
    logic [4:0] began = '0;
    logic s5_looks_up;
    logic [RESULT_BITS-1:0] s1_moved, s2_moved, s5_line;
    logic [1:0][RESULT_BITS-1:0] segment_starts;
    logic [4:0][RESULT_BITS-1:0] values;
    logic signed [SLOPE_BITS+8:0] half_more;
    assign half_more = rise + 128;
    always_ff @(posedge clk) begin
        began <= {began[3:0], 1'b1};
        s1_moved <= 16'(32'(value) << align_shift);
        s2_moved <= s1_moved;
        segment_starts <= {segment_starts[0], segment_start};
        s5_line <= segment_starts[1] + half_more[SLOPE_BITS+7-:RESULT_BITS+2];
        s5_looks_up <= uses_table;
        values <= {values[3:0], value};
    end
    always_comb begin
        assert (write_address == entry && write_data == {slope, start});
        if (began[0]) begin
            if (TABLE_BITS > 8 && align_shift == 4'd8) assert (read_address == values[0][TABLE_BITS-1:0]);
            else assert (read_address == TABLE_BITS'(s1_moved[15:8]));
        end
        if (began[1]) assert (segment_offset == s2_moved[7:0]);
        if (began[4]) assert (result == (s5_looks_up ? s5_line : values[4]));
    end
endmodule
bind look_up_segment look_up_segment_proof #(.SLOPE_BITS(SLOPE_BITS)) proof (.*, .write_address(segments.write_address),
    .write_data(segments.write_data), .read_address(segments.read_address));

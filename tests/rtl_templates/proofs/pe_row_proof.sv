// Bound into pe_row. A chain adds its products into one number, with a field for each pair of a column and a position
// that share its DSPs. A cycle later the number is split into these fields, each with its sign and without the borrow
// of the field below.
module pe_row_proof
    import systolic_geometry::*;
#(
    parameter int FIELDS = 4,
    parameter int FIELD_BITS = 11
) (
    input logic clk,
    input logic [47:0] sum,
    input logic [FIELDS-1:0][FIELD_BITS-1:0] parts  // of the only chain
);
    localparam int BITS = FIELDS * FIELD_BITS;
    logic began = 1'b0;
    logic [FIELDS-1:0][FIELD_BITS-1:0] any, was;  // any: undriven, so that the solver chooses it
    logic [BITS-1:0] packed_sum;
    always_comb begin
        packed_sum = '0;
        for (int f = 0; f < FIELDS; f++) packed_sum = packed_sum + (BITS'(signed'(any[f])) << (f * FIELD_BITS));
        assume (sum[BITS-1:0] == packed_sum);
        // The scheduler's chains are short enough for every sum to fit its field.
        for (int f = 0; f < FIELDS; f++) assume (any[f] != {1'b1, (FIELD_BITS - 1)'(0)});
    end
    always_ff @(posedge clk) begin
        began <= 1'b1;
        was <= any;
    end
    always_comb if (began) for (int f = 0; f < FIELDS; f++) assert (parts[f] == was[f]);
endmodule
bind pe_row pe_row_proof #(.FIELDS(FIELDS), .FIELD_BITS(FIELD_BITS)) proof (
    .clk, .sum(column_group[0].chain[0].sum), .parts(column_group[0].parts));

// A row of PEs like pe_row, in which three neighbouring columns and both positions share a DSP per lane (six_products).
// Lanes are summed in adder trees, even and odd lanes separately, because the odd lanes of a pixel are its high nibbles
// and have weight 16. All lanes arrive in the same cycle, not skewed. ``control`` arrives together with the sums of a
// step's lanes.
module pe_row_six
    import systolic_geometry::*;
(
    input logic clk,
    input logic [2:0] control,  // valid, first, last step of a position
    input logic nibbles,
    input logic [LANES-1:0][COLUMNS/3-1:0][17:0] weights,  // three columns each (pack_weights)
    input logic [1:0][LANES-1:0][3:0] values,
    output logic sums_valid,
    output sums_t [POSITIONS-1:0] sums
);
    localparam int PART_BITS = 7 + 2 * tree_levels(LANES / 2);  // bits of a sum of half of the lanes

    for (genvar n = 0; n < COLUMNS; n += 3) begin : column_group
        logic [5:0][1:0][LANES/2-1:0][6:0] products;  // [field][even or odd lanes][lane / 2]
        for (genvar l = 0; l < LANES; l++) begin : lane
            logic [5:0][6:0] six;
            six_products dsp (.clk, .weights(weights[l][n/3]), .values({values[1][l], values[0][l]}), .products(six));
            for (genvar f = 0; f < 6; f++) begin : field
                assign products[f][l%2][l/2] = six[f];
            end
        end
        for (genvar f = 0; f < 6; f++) begin : accumulated
            localparam int P = f / 3;
            localparam int N = n + f % 3;
            logic signed [PART_BITS-1:0] even, odd;
            ternary_adder_tree #(.COUNT(LANES / 2), .WIDTH(7)) evens (.clk, .numbers(products[f][0]), .sum(even));
            ternary_adder_tree #(.COUNT(LANES / 2), .WIDTH(7)) odds (.clk, .numbers(products[f][1]), .sum(odd));
            logic signed [PART_BITS+4:0] both;
            always_ff @(posedge clk) begin
                both <= (PART_BITS + 5)'(even) + (nibbles ? (PART_BITS + 5)'(odd) <<< 4 : (PART_BITS + 5)'(odd));
                if (control[2]) sums[P][N] <= (control[1] ? '0 : sums[P][N]) + SUM_BITS'(both);
            end
        end
    end

    always_ff @(posedge clk) sums_valid <= control[2] && control[0];
endmodule

// Bound into multiply. In a pass that multiplies maps, each value of a group is multiplied by its factor. In other
// passes it is unchanged, and so is the rest of the group in any pass. The result follows three cycles later, before
// the FIFO.
module multiply_values_proof
    import systolic_geometry::*;
(
    input logic clk,
    input pass_t pass,
    input factors_t factors,
    input group_t group,
    input group_t s3_group  // inside
);
    logic [2:0] began = '0;
    logic multiplies, was_multiplies;
    group_t expected, s1_group, s2_group, s3_expected;
    assign multiplies = pass.pool_stride < 0;
    always_comb begin
        expected = group;
        if (multiplies)
            for (int r = 0; r < SAVE_ROWS; r++)
                for (int n = 0; n < COLUMNS; n++)
                    expected.row[r][n] = SUM_BITS'(signed'(factors[r][n]) * signed'((2 * VALUE_BITS)'(signed'(
                        group.row[r][n][VALUE_BITS-1:0]))));
    end
    always_ff @(posedge clk) begin
        began <= {began[1:0], 1'b1};
        was_multiplies <= multiplies;
        {s1_group, s2_group, s3_expected} <= {expected, s1_group, s2_group};
    end
    always_comb if (began[0]) assume (multiplies == was_multiplies);
    always_comb if (began[2]) assert (s3_group == s3_expected);
endmodule
bind multiply multiply_values_proof proof (.clk, .pass, .factors, .group, .s3_group(some.s3_group));

// Multiplies two maps value by value, in passes that multiply maps; groups of other passes are unchanged. The array has
// multiplied each value by 1, so that both factors fit into VALUE_BITS. Without MAP_PRODUCTS, this module is only
// wires.
module multiply
    import systolic_geometry::*;
(
    // verilator lint_off UNUSEDSIGNAL
    input logic clk,
    input logic reset,
    input pass_t pass,
    input factors_t factors,
    // verilator lint_on UNUSEDSIGNAL
    output logic done,
    input logic group_valid,
    output logic group_ready,
    input group_t group,
    output logic product_valid,
    input logic product_ready,
    output group_t product
);
    if (MAP_PRODUCTS == 0) begin : none
        assign product_valid = group_valid;
        assign group_ready = product_ready;
        assign product = group;
        assign done = 1'b1;
    end else begin : some
        localparam int LATENCY = 3;
        // a · b as a sum of shifted values, because the array needs the DSPs. The top bit of b has negative weight.
        function automatic logic signed [2*VALUE_BITS-1:0] product_of(
            logic signed [VALUE_BITS-1:0] a, logic signed [VALUE_BITS-1:0] b);
            automatic logic signed [2*VALUE_BITS-1:0] wide = (2 * VALUE_BITS)'(a);
            product_of = b[VALUE_BITS-1] ? -(wide <<< (VALUE_BITS - 1)) : '0;
            for (int i = 0; i < VALUE_BITS - 1; i++) product_of = product_of + (b[i] ? wide <<< i : '0);
        endfunction

        logic [LATENCY-1:0] valid;
        group_t s1_group, s2_group, s3_group;
        factors_t s1_factors;
        logic signed [SAVE_ROWS-1:0][COLUMNS-1:0][2*VALUE_BITS-1:0] products;
        always_ff @(posedge clk) begin
            valid <= reset ? '0 : {valid[LATENCY-2:0], group_valid && group_ready};
            s1_group <= group;
            s1_factors <= factors;
            s2_group <= s1_group;
            s3_group <= s2_group;
            for (int r = 0; r < SAVE_ROWS; r++) begin
                for (int n = 0; n < COLUMNS; n++) begin
                    products[r][n] <= product_of(s1_factors[r][n], s1_group.row[r][n][VALUE_BITS-1:0]);
                    if (pass.pool_stride < 0) s3_group.row[r][n] <= SUM_BITS'(signed'(products[r][n]));
                end
            end
        end
        fifo #(.WIDTH($bits(group_t)), .DEPTH(LATENCY + 4), .SLACK(LATENCY)) multiplied (
            .clk, .reset, .in_valid(valid[LATENCY-1]), .in_ready(group_ready), .in_data(s3_group),
            .out_valid(product_valid), .out_ready(product_ready), .out_data(product));
        assign done = valid == '0 && !product_valid;
    end
endmodule

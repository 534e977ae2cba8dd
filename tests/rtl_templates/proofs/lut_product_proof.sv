// Bound into lut_product. The product is number · factor of two cycles before.
module lut_product_proof #(
    parameter int NUMBER_BITS = 32,
    parameter int FACTOR_BITS = 17
) (
    input logic clk,
    input logic signed [NUMBER_BITS-1:0] number,
    input logic signed [FACTOR_BITS-1:0] factor,
    input logic signed [NUMBER_BITS+FACTOR_BITS-1:0] product
);
    logic [1:0] began = '0;
    logic signed [NUMBER_BITS-1:0] s1_number, s2_number;
    logic signed [FACTOR_BITS-1:0] s1_factor, s2_factor;
    always_ff @(posedge clk) begin
        began <= {began[0], 1'b1};
        {s1_number, s2_number} <= {number, s1_number};
        {s1_factor, s2_factor} <= {factor, s1_factor};
    end
    always_comb if (began[1]) assert (product == s2_number * s2_factor);
endmodule
bind lut_product lut_product_proof #(.NUMBER_BITS(NUMBER_BITS), .FACTOR_BITS(FACTOR_BITS)) proof (.*);

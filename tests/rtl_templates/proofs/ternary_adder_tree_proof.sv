// Bound into ternary_adder_tree. The sum of all numbers follows LEVELS cycles later, and it keeps every bit.
module ternary_adder_tree_proof
    import systolic_geometry::*;
#(
    parameter int COUNT = 8,
    parameter int WIDTH = 7,
    parameter int LEVELS = 2
) (
    input logic clk,
    input logic [COUNT-1:0][WIDTH-1:0] numbers,
    input logic signed [WIDTH+2*LEVELS-1:0] sum
);
    logic [LEVELS:0][31:0] past;  // sums of 0, 1, … cycles before
    logic [LEVELS:0] known = '0;
    always_comb begin
        past[0] = 0;
        for (int i = 0; i < COUNT; i++) past[0] = past[0] + 32'(signed'(numbers[i]));
        known[0] = 1'b1;
    end
    always_ff @(posedge clk)
        for (int i = 1; i <= LEVELS; i++) begin
            past[i] <= past[i-1];
            known[i] <= known[i-1];
        end
    always_comb if (known[LEVELS]) assert (32'(sum) == past[LEVELS]);
endmodule
bind ternary_adder_tree ternary_adder_tree_proof #(.COUNT(COUNT), .WIDTH(WIDTH), .LEVELS(LEVELS)) proof (.*);

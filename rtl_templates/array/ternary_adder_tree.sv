// An adder tree for COUNT numbers. Each adder has three operands, takes one LUT per bit (UG574), and has a register at
// its output. The latency is tree_levels(COUNT) cycles.
module ternary_adder_tree
    import systolic_geometry::*;
#(
    parameter int COUNT = 8,
    parameter int WIDTH = 7,
    localparam int LEVELS = tree_levels(COUNT),
    localparam int SUM_WIDTH = WIDTH + 2 * LEVELS
) (
    input logic clk,
    input logic [COUNT-1:0][WIDTH-1:0] numbers,
    output logic signed [SUM_WIDTH-1:0] sum
);
    // verilator lint_off UNUSEDSIGNAL
    logic signed [LEVELS:0][COUNT-1:0][SUM_WIDTH-1:0] level;
    // verilator lint_on UNUSEDSIGNAL
    for (genvar i = 0; i < COUNT; i++) begin : widened
        assign level[0][i] = SUM_WIDTH'(signed'(numbers[i]));
    end
    for (genvar k = 0; k < LEVELS; k++) begin : levels
        localparam int OPERANDS = operands_at_level(COUNT, k);
        localparam int LEVEL_WIDTH = WIDTH + 2 * (k + 1);  // bits of a sum of 3^(k + 1) numbers
        for (genvar i = 0; i < COUNT; i++) begin : ternary_sums
            if (3 * i < OPERANDS) begin : adders
                logic signed [LEVEL_WIDTH-1:0] ternary_sum;
                always_comb begin
                    ternary_sum = LEVEL_WIDTH'(level[k][3*i]);
                    if (3 * i + 1 < OPERANDS) ternary_sum = ternary_sum + LEVEL_WIDTH'(level[k][(3*i+1)%COUNT]);
                    if (3 * i + 2 < OPERANDS) ternary_sum = ternary_sum + LEVEL_WIDTH'(level[k][(3*i+2)%COUNT]);
                end
                logic signed [LEVEL_WIDTH-1:0] registered;
                always_ff @(posedge clk) registered <= ternary_sum;
                assign level[k+1][i] = SUM_WIDTH'(registered);
            end else begin : none
                assign level[k+1][i] = '0;
            end
        end
    end
    assign sum = level[LEVELS][0];
endmodule

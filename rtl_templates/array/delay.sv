// Delays a word by CYCLES cycles. With CYCLES 0 it is a wire.
module delay #(
    parameter int WIDTH = 8,
    parameter int CYCLES = 1
) (
    input logic clk,
    input logic [WIDTH-1:0] in_data,
    output logic [WIDTH-1:0] out_data
);
    if (CYCLES == 0) begin : none
        logic unused;
        assign unused = clk;
        assign out_data = in_data;
    end else begin : some
        logic [CYCLES-1:0][WIDTH-1:0] stages;
        always_ff @(posedge clk) begin
            stages[0] <= in_data;
            for (int i = 1; i < CYCLES; i++) stages[i] <= stages[i-1];
        end
        assign out_data = stages[CYCLES-1];
    end
endmodule

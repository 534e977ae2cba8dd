// Bound into capture_sums, at twice the clock. Each cycle of clk gives the two sums that the chain gave before, the
// first one lowest. They belong to the two halves of a cycle or, in ODD rows, to a second half and the following first
// half. No sum is left out or taken twice, and both are stable for the whole cycle.
module capture_sums_proof #(
    parameter int WIDTH = 36,
    parameter bit ODD = 0
) (
    input logic clk,
    input logic dsp_clk,
    input logic [WIDTH-1:0] sum,
    input logic [1:0][WIDTH-1:0] sums
);
    logic began = 1'b0, was_clk;
    logic [4:0][WIDTH-1:0] previous_sum;
    logic [4:0] known;
    always_comb previous_sum[0] = sum;
    always_comb known[0] = began;
    always_ff @(posedge dsp_clk) begin
        began <= 1'b1;
        was_clk <= clk;
        for (int i = 1; i <= 4; i++) {previous_sum[i], known[i]} <= {previous_sum[i-1], known[i-1]};
    end
    always_comb begin
        if (!began) assume (known == '0);
        if (began) assume (clk == !was_clk);
    end
    always_comb begin
        for (int i = 1; i <= 4; i++) assert (known[i-1] || !known[i]);
        if (known[4]) assert (sums == (clk ? {previous_sum[2+ODD], previous_sum[3+ODD]} : {previous_sum[1+ODD], previous_sum[2+ODD]}));
    end
endmodule
bind capture_sums capture_sums_proof #(.WIDTH(WIDTH), .ODD(ODD)) proof (.*);

// Bound into operand, at twice the clock. Each word is output STEPS + 3 edges of dsp_clk later, for both halves of the
// cycle.
module operand_proof #(
    parameter int WIDTH = 8,
    parameter int STEPS = 0
) (
    input logic clk,
    input logic dsp_clk,
    input logic [WIDTH-1:0] in_data,
    input logic [WIDTH-1:0] out_data
);
    localparam int LATE = STEPS + 3;
    logic began = 1'b0, was_clk;
    logic [LATE:0][WIDTH-1:0] past;
    logic [LATE:0] known;
    always_comb past[0] = in_data;
    always_comb known[0] = began;
    always_ff @(posedge dsp_clk) begin
        began <= 1'b1;
        was_clk <= clk;
        for (int i = 1; i <= LATE; i++) {past[i], known[i]} <= {past[i-1], known[i-1]};
    end
    always_comb begin
        assume (dsp_clk);  // every step of the solver is an edge of dsp_clk
        if (!began) assume (known == '0);
        if (began) assume (clk == !was_clk);
        if (known[1] && clk) assume (in_data == past[1]);
    end
    always_comb begin
        for (int i = 1; i <= LATE; i++) assert (known[i-1] || !known[i]);
        if (known[LATE]) assert (out_data == past[LATE]);
    end
endmodule
bind operand operand_proof #(.WIDTH(WIDTH), .STEPS(STEPS)) proof (.*);

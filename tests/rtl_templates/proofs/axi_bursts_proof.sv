// Bound into axi_bursts. The bursts cover the words of a command in order, each word once. No burst crosses a page of 4
// KB, is empty or has more than LENGTH beats. Every accepted burst reduces the number of words that are left.
module axi_bursts_proof #(
    parameter int BYTES = 4,
    parameter int LENGTH = 64,
    parameter bit GATED = 0  // whether a burst may be held back
) (
    input logic clk,
    input logic reset,
    input logic [63:0] base,
    input logic command_valid,
    input logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    input logic burst_valid,
    input logic burst_ready,
    input logic [63:0] burst_address,
    input logic [7:0] burst_length,
    input logic [31:0] remaining,
    input logic busy
);
    logic began = 1'b0, waited;
    logic [63:0] next, shown;  // the byte after the last burst
    logic [31:0] words_left;  // words of the command that are left
    logic [7:0] shown_length;
    logic [31:0] beats;
    assign beats = 32'(burst_length) + 1;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        waited <= burst_valid && !burst_ready && !reset;
        shown <= burst_address;
        shown_length <= burst_length;
        if (reset) words_left <= '0;
        else if (command_valid && command_ready) begin
            next <= base + 64'(command_address) * BYTES;
            words_left <= command_words;
        end else if (burst_valid && burst_ready) begin
            next <= next + 64'(beats) * BYTES;
            words_left <= words_left - beats;
        end
    end

    always_comb begin
        if (!began) assume (reset);
        assume (base % BYTES == 0);
        if (command_valid) assume (command_words != 0);
    end
    always_comb if (began) begin
        assert (busy == (words_left != 0) && busy == !command_ready);
        assert (GATED ? busy || !burst_valid : busy == burst_valid);
        if (busy) begin
            assert (remaining == words_left && burst_address == next && next % BYTES == 0);
            assert (beats <= LENGTH && beats <= words_left);
            assert (32'(burst_address[11:0]) + beats * BYTES <= 4096);
        end
        if (waited) assert (burst_valid && burst_address == shown && burst_length == shown_length);
    end
endmodule
bind axi_bursts axi_bursts_proof #(.BYTES(BYTES), .LENGTH(LENGTH)) proof (.*);

// Splits a command into AXI bursts of at most LENGTH beats that do not cross a 4 KB page. A command is
// ``command_words`` words, at least one, from word ``command_address`` on. A word is one beat of BYTES bytes.
module axi_bursts #(
    parameter int BYTES = 4,
    parameter int LENGTH = 64
) (
    input logic clk,
    input logic reset,
    input logic [63:0] base,
    input logic command_valid,
    output logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    output logic burst_valid,
    input logic burst_ready,
    output logic [63:0] burst_address,
    output logic [7:0] burst_length  // beats − 1, as in AXI
);
    localparam int SHIFT = $clog2(BYTES);
    localparam int PAGE_WORDS = 4096 / BYTES;

    logic [63:0] address;
    logic [31:0] remaining, page, beats;
    logic busy;

    assign page = 32'(PAGE_WORDS) - 32'(address[11:SHIFT]);
    always_comb begin
        beats = remaining < 32'(LENGTH) ? remaining : 32'(LENGTH);
        if (page < beats) beats = page;
    end
    assign burst_valid = busy;
    assign burst_address = address;
    assign burst_length = 8'(beats - 1);
    assign command_ready = !busy;

    always_ff @(posedge clk) begin
        if (reset) busy <= 1'b0;
        else if (!busy) busy <= command_valid;
        else if (burst_ready) busy <= remaining != beats;
        if (!busy) begin
            address <= base + (64'(command_address) << SHIFT);
            remaining <= command_words;
        end else if (burst_ready) begin
            address <= address + (64'(beats) << SHIFT);
            remaining <= remaining - beats;
        end
    end
endmodule

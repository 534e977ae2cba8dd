// Reads the words of commands from DDR, in order. At most OUTSTANDING bursts are in flight, and a FIFO of DEPTH words
// is at the output.
module axi_read #(
    parameter int BYTES = 4,
    parameter int LENGTH = 64,
    parameter int OUTSTANDING = 8,
    parameter int DEPTH = 32
) (
    input logic clk,
    input logic reset,
    input logic [63:0] base,
    input logic command_valid,
    output logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    output logic out_valid,
    input logic out_ready,
    output logic [8*BYTES-1:0] out_data,
    output logic ar_valid,
    input logic ar_ready,
    output logic [63:0] ar_address,
    output logic [7:0] ar_length,
    input logic r_valid,
    output logic r_ready,
    input logic r_last,
    input logic [8*BYTES-1:0] r_data
);
    localparam int OPEN_BITS = $clog2(OUTSTANDING + 1);
    logic [OPEN_BITS-1:0] open_bursts;
    logic burst_valid, room, requested, burst_done;

    assign room = open_bursts != OPEN_BITS'(OUTSTANDING);
    assign ar_valid = burst_valid && room;
    assign requested = ar_valid && ar_ready;
    assign burst_done = r_valid && r_ready && r_last;

    axi_bursts #(.BYTES(BYTES), .LENGTH(LENGTH)) bursts (
        .clk, .reset, .base, .command_valid, .command_ready, .command_address, .command_words, .burst_valid,
        .burst_ready(requested), .burst_address(ar_address), .burst_length(ar_length));

    fifo #(.WIDTH(8 * BYTES), .DEPTH(DEPTH)) words (
        .clk, .reset, .in_valid(r_valid), .in_ready(r_ready), .in_data(r_data), .out_valid, .out_ready, .out_data);

    always_ff @(posedge clk) begin
        if (reset) open_bursts <= '0;
        else open_bursts <= open_bursts + OPEN_BITS'(requested) - OPEN_BITS'(burst_done);
    end
endmodule

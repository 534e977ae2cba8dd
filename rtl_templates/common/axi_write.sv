// Writes the words of ``in_data`` to DDR for commands, in order. ``idle`` says that every requested burst is
// acknowledged, so that the written words can be read.
module axi_write #(
    parameter int BYTES = 4,
    parameter int LENGTH = 64,
    parameter int OUTSTANDING = 8
) (
    input logic clk,
    input logic reset,
    input logic [63:0] base,
    input logic command_valid,
    output logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    input logic in_valid,
    output logic in_ready,
    input logic [8*BYTES-1:0] in_data,
    input logic [1:0] in_halves,  // the halves of the word that are written
    output logic idle,
    output logic aw_valid,
    input logic aw_ready,
    output logic [63:0] aw_address,
    output logic [7:0] aw_length,
    output logic w_valid,
    input logic w_ready,
    output logic w_last,
    output logic [8*BYTES-1:0] w_data,
    output logic [BYTES-1:0] w_strobe,
    input logic b_valid,
    output logic b_ready
);
    localparam int OPEN_BITS = $clog2(OUTSTANDING + 1);
    logic [OPEN_BITS-1:0] open_bursts;
    logic burst_valid, room, requested, acknowledged, length_room, length_valid, burst_ends;
    logic [7:0] length, beat;

    // The length of a requested burst waits here for its data, while further bursts are requested.
    assign room = open_bursts != OPEN_BITS'(OUTSTANDING) && length_room;
    assign aw_valid = burst_valid && room;
    assign requested = aw_valid && aw_ready;
    assign acknowledged = b_valid && b_ready;
    assign b_ready = 1'b1;
    assign idle = open_bursts == '0 && command_ready && !command_valid;

    axi_bursts #(.BYTES(BYTES), .LENGTH(LENGTH)) bursts (
        .clk, .reset, .base, .command_valid, .command_ready, .command_address, .command_words, .burst_valid,
        .burst_ready(requested), .burst_address(aw_address), .burst_length(aw_length));

    fifo #(.WIDTH(8), .DEPTH(OUTSTANDING)) lengths (
        .clk, .reset, .in_valid(requested), .in_ready(length_room), .in_data(aw_length), .out_valid(length_valid),
        .out_ready(burst_ends), .out_data(length));

    assign w_valid = length_valid && in_valid;
    assign in_ready = length_valid && w_ready;
    assign w_last = beat == length;
    assign w_data = in_data;
    assign w_strobe = {{BYTES / 2{in_halves[1]}}, {BYTES / 2{in_halves[0]}}};
    assign burst_ends = w_valid && w_ready && w_last;

    always_ff @(posedge clk) begin
        if (reset) begin
            open_bursts <= '0;
            beat <= '0;
        end else begin
            open_bursts <= open_bursts + OPEN_BITS'(requested) - OPEN_BITS'(acknowledged);
            if (w_valid && w_ready) beat <= w_last ? '0 : beat + 1'b1;
        end
    end
endmodule

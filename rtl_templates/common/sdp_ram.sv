// A simple dual-port memory: one write port, and one read port with a latency of one cycle. STYLE is block, ultra or
// distributed, as the schedule has chosen. A word must not be read in the cycle in which it is written.
module sdp_ram #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 2,
    // verilator lint_off UNUSEDPARAM
    parameter STYLE = "block",
    // verilator lint_on UNUSEDPARAM
    localparam int ADDRESS_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
    input logic clk,
    input logic write,
    input logic [ADDRESS_BITS-1:0] write_address,
    input logic [WIDTH-1:0] write_data,
    input logic read,
    input logic [ADDRESS_BITS-1:0] read_address,
    output logic [WIDTH-1:0] read_data
);
    (* ram_style = STYLE *) logic [WIDTH-1:0] memory[DEPTH];

    always_ff @(posedge clk) begin
        if (write) memory[write_address] <= write_data;
        if (read) read_data <= memory[read_address];
    end
endmodule

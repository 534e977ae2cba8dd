// A memory like sdp_ram. With HALVES, the halves of a word have separate write enables; block RAM and URAM implement
// them as byte write enables. Without HALVES, a whole word is written.
module sdp_ram_halves #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 2,
    // verilator lint_off UNUSEDPARAM
    parameter STYLE = "block",
    // verilator lint_on UNUSEDPARAM
    parameter bit HALVES = 0,
    localparam int ADDRESS_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
    input logic clk,
    input logic write,
    input logic [1:0] write_halves,
    input logic [ADDRESS_BITS-1:0] write_address,
    input logic [WIDTH-1:0] write_data,
    input logic read,
    input logic [ADDRESS_BITS-1:0] read_address,
    output logic [WIDTH-1:0] read_data
);
    (* ram_style = STYLE *) logic [WIDTH-1:0] memory[DEPTH];

    if (HALVES) begin : half_enables
        always_ff @(posedge clk)
            for (int h = 0; h < 2; h++)
                if (write && write_halves[h])
                    memory[write_address][h*(WIDTH/2)+:WIDTH/2] <= write_data[h*(WIDTH/2)+:WIDTH/2];
    end else begin : whole_word
        logic unused;
        assign unused = &write_halves;
        always_ff @(posedge clk) if (write) memory[write_address] <= write_data;
    end
    always_ff @(posedge clk) if (read) read_data <= memory[read_address];
endmodule

// Bound into sdp_ram. Any word that is read is output a cycle later, as it was last written. It is stable until the
// next read.
module sdp_ram_proof #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 2,
    localparam int ADDRESS_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
    input logic clk,
    input logic write,
    input logic [ADDRESS_BITS-1:0] write_address,
    input logic [WIDTH-1:0] write_data,
    input logic read,
    input logic [ADDRESS_BITS-1:0] read_address,
    input logic [WIDTH-1:0] read_data,
    input logic [WIDTH-1:0] memory[DEPTH]
);
    logic began = 1'b0, known, shown;
    logic [ADDRESS_BITS-1:0] address, any;  // any: undriven, so that the solver chooses it
    logic [WIDTH-1:0] word, shown_word;
    always_ff @(posedge clk) begin
        began <= 1'b1;
        address <= began ? address : any;
        if (!began) {known, shown} <= '0;
        else begin
            if (write && write_address == address) begin
                known <= 1'b1;
                word <= write_data;
            end
            if (read) begin
                shown <= known && read_address == address;
                shown_word <= word;
            end
        end
    end
    always_comb begin
        assume (32'(any) < DEPTH && 32'(write_address) < DEPTH && 32'(read_address) < DEPTH);
        if (read && write) assume (read_address != write_address);
    end
    always_comb if (began) begin
        assert (32'(address) < DEPTH);
        if (known) assert (memory[address] == word);
        if (shown) assert (read_data == shown_word);
    end
endmodule
bind sdp_ram sdp_ram_proof #(.WIDTH(WIDTH), .DEPTH(DEPTH)) proof (.*);

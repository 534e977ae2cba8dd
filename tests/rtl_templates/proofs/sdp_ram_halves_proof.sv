// Bound into sdp_ram_halves. Any word that is read is output a cycle later, each half as it was last written. It is
// stable until the next read. Without HALVES both halves are written, for every value of ``write_halves``.
module sdp_ram_halves_proof #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 2,
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
    input logic [WIDTH-1:0] read_data,
    input logic [WIDTH-1:0] memory[DEPTH]
);
    logic began = 1'b0, shown;
    logic [ADDRESS_BITS-1:0] address, any;  // any: undriven, so that the solver chooses it
    logic [1:0] known, shown_halves;
    logic [1:0][WIDTH/2-1:0] word, shown_word;
    always_ff @(posedge clk) begin
        began <= 1'b1;
        address <= began ? address : any;
        if (!began) {known, shown} <= '0;
        else begin
            for (int h = 0; h < 2; h++)
                if (write && write_address == address && (!HALVES || write_halves[h])) begin
                    known[h] <= 1'b1;
                    word[h] <= write_data[h*(WIDTH/2)+:WIDTH/2];
                end
            if (read) begin
                shown <= read_address == address;
                shown_halves <= known;
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
        for (int h = 0; h < 2; h++) begin
            if (known[h]) assert (memory[address][h*(WIDTH/2)+:WIDTH/2] == word[h]);
            if (shown && shown_halves[h]) assert (read_data[h*(WIDTH/2)+:WIDTH/2] == shown_word[h]);
        end
    end
endmodule
bind sdp_ram_halves sdp_ram_halves_proof #(.WIDTH(WIDTH), .DEPTH(DEPTH), .HALVES(HALVES)) proof (.*);

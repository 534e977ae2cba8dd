// Two buffers for maps that stay on chip. A pass reads one buffer (load) and writes the other one (arrange). It may
// read the residual map from the buffer that it writes, each word before it is overwritten. A buffer has ROWS banks, so
// that ROWS rows move per cycle, one word per bank. scheduler/systolic/map_buffers.py defines the bank and the address
// of a row. A word is valid one cycle after its address. If MAP_DEPTH is 0, this module is empty.
module map_buffers
    import systolic_geometry::*;
(
    // verilator lint_off UNUSEDSIGNAL
    input logic clk,
    input number_t read_from,  // buffer 1 or 2; 0: none
    input number_t [ROWS-1:0] read_address,
    output word_t [ROWS-1:0] read_words,
    input number_t add_from,  // as read_from, and never the same buffer; 0 in engines without residual adds
    input number_t [ROWS-1:0] add_address,
    output word_t [ROWS-1:0] add_words,
    input number_t write_to,  // as read_from, and never the same buffer
    input logic [ROWS-1:0] write,
    input logic [1:0] write_halves,  // halves of a word that are written: both if channel tiles are whole blocks
    input number_t [ROWS-1:0] write_address,
    input word_t [ROWS-1:0] write_words
    // verilator lint_on UNUSEDSIGNAL
);
    if (MAP_DEPTH == 0) begin : none
        assign read_words = '0;
        assign add_words = '0;
    end else begin : both
        localparam int ADDRESS_BITS = MAP_DEPTH > 1 ? $clog2(MAP_DEPTH) : 1;
        word_t [ROWS-1:0] first, second;
        logic adds_first, adds_second;
        assign adds_first = ADDED_MAPS > 0 && add_from == 1;
        assign adds_second = ADDED_MAPS > 0 && add_from == 2;
        for (genvar bank = 0; bank < ROWS; bank++) begin : banks
            logic [ADDRESS_BITS-1:0] first_address, second_address;
            assign first_address = ADDRESS_BITS'(adds_first ? add_address[bank] : read_address[bank]);
            assign second_address = ADDRESS_BITS'(adds_second ? add_address[bank] : read_address[bank]);
            sdp_ram_halves #(.WIDTH(WORD_BITS), .DEPTH(MAP_DEPTH), .STYLE(MAP_MEMORY), .HALVES(HALF_BLOCKS)) one (
                .clk, .write(write[bank] && write_to == 1), .write_halves, .write_address(ADDRESS_BITS'(write_address[bank])),
                .write_data(write_words[bank]), .read(read_from == 1 || adds_first), .read_address(first_address),
                .read_data(first[bank]));
            sdp_ram_halves #(.WIDTH(WORD_BITS), .DEPTH(MAP_DEPTH), .STYLE(MAP_MEMORY), .HALVES(HALF_BLOCKS)) two (
                .clk, .write(write[bank] && write_to == 2), .write_halves, .write_address(ADDRESS_BITS'(write_address[bank])),
                .write_data(write_words[bank]), .read(read_from == 2 || adds_second), .read_address(second_address),
                .read_data(second[bank]));
        end
        assign read_words = read_from == 1 ? first : second;
        assign add_words = ADDED_MAPS == 0 ? '0 : adds_first ? first : second;
    end
endmodule

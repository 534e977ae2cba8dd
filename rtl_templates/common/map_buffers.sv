// Two buffers for maps that stay on chip: a pass reads one (load) and writes the other (arrange), from which it may read
// what it adds before. Each has ROWS banks, so that ROWS rows move in a cycle, a word from each bank; where a row lies is
// said in scheduler/systolic/map_buffers.py. A word comes a cycle after its address. Without map buffers there is nothing.
module map_buffers
    import systolic_geometry::*;
(
    // verilator lint_off UNUSEDSIGNAL
    input logic clk,
    input number_t read_from,  // buffer 1 or 2, 0: none
    input number_t [ROWS-1:0] read_address,
    output word_t [ROWS-1:0] read_words,
    input number_t add_from,  // as read_from, and never the same one; 0 in engines that add no maps
    input number_t [ROWS-1:0] add_address,
    output word_t [ROWS-1:0] add_words,
    input number_t write_to,  // as read_from, and never the same one
    input logic [ROWS-1:0] write,
    input logic [1:0] write_halves,  // of the words; with whole channel tiles always both
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

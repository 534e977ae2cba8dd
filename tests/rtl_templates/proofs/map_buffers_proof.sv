// Bound into map_buffers. The proof follows any word of any bank of either buffer. Once written, the word is read a
// cycle later as it was last written, each half on its own. Both the reader of a map and the reader of an added map get
// it. Writes to the other buffer, another bank or another address do not change it.
module map_buffers_proof
    import systolic_geometry::*;
(
    input logic clk,
    input number_t read_from,
    input number_t [ROWS-1:0] read_address,
    input word_t [ROWS-1:0] read_words,
    input number_t add_from,
    input number_t [ROWS-1:0] add_address,
    input word_t [ROWS-1:0] add_words,
    input number_t write_to,
    input logic [ROWS-1:0] write,
    input logic [1:0] write_halves,
    input number_t [ROWS-1:0] write_address,
    input word_t [ROWS-1:0] write_words,
    // inside
    input word_t first_0[MAP_DEPTH],
    input word_t first_1[MAP_DEPTH],
    input word_t second_0[MAP_DEPTH],
    input word_t second_1[MAP_DEPTH]
);
    localparam int HALF = WORD_BITS / 2;
    logic began = 1'b0;
    logic any_second, second, any_bank, bank, was_read, was_added;  // any: undriven, so that the solver chooses it
    number_t any_address, address, buffer, was_read_from, was_add_from;
    logic [1:0] known, known_before;
    word_t word, word_before, stored;
    assign buffer = second ? 2 : 1;
    always_comb begin
        if (second) stored = bank ? second_1[address] : second_0[address];
        else stored = bank ? first_1[address] : first_0[address];
    end
    always_ff @(posedge clk) begin
        began <= 1'b1;
        {second, bank, address} <= began ? {second, bank, address} : {any_second, any_bank, any_address};
        {was_read_from, was_add_from} <= {read_from, add_from};
        {known_before, word_before} <= {known, word};
        was_read <= began && read_from == buffer && read_address[bank] == address;
        was_added <= began && add_from == buffer && add_address[bank] == address;
        for (int h = 0; h < 2; h++)
            if (began && write[bank] && write_to == buffer && write_address[bank] == address && (!HALF_BLOCKS || write_halves[h])) begin
                known[h] <= 1'b1;
                word[h*HALF+:HALF] <= write_words[bank][h*HALF+:HALF];
            end
        if (!began) known <= '0;
    end
    always_comb begin
        assume (any_address >= 0 && any_address < MAP_DEPTH);
        for (int b = 0; b < ROWS; b++) begin
            assume (read_address[b] >= 0 && read_address[b] < MAP_DEPTH && add_address[b] >= 0 && add_address[b] < MAP_DEPTH);
            assume (write_address[b] >= 0 && write_address[b] < MAP_DEPTH);
        end
        assume (read_from >= 0 && read_from <= 2 && add_from >= 0 && add_from <= 2);
        // The scheduler lets a pass read one buffer, and add from and write to the other, for the whole pass.
        assume (read_from == 0 || (read_from != add_from && read_from != write_to));
        if (was_read) assume (read_from == was_read_from);
        if (was_added) assume (add_from == was_add_from);
        // An added word was written in an earlier pass, and its sum is written some cycles later.
        if (add_from == buffer && write_to == buffer && write[bank]) assume (add_address[bank] != write_address[bank]);
    end
    always_comb if (began) begin
        assert (address >= 0 && address < MAP_DEPTH);
        for (int h = 0; h < 2; h++) begin
            if (known[h]) assert (stored[h*HALF+:HALF] == word[h*HALF+:HALF]);
            if (was_read && known_before[h]) assert (read_words[bank][h*HALF+:HALF] == word_before[h*HALF+:HALF]);
            if (was_added && known_before[h]) assert (add_words[bank][h*HALF+:HALF] == word_before[h*HALF+:HALF]);
        end
    end
endmodule
bind map_buffers map_buffers_proof proof (.*,
    .first_0(both.banks[0].one.memory), .first_1(both.banks[1].one.memory),
    .second_0(both.banks[0].two.memory), .second_1(both.banks[1].two.memory));

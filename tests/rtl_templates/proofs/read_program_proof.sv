// Bound into read_program. Each pass gets one command at its address, and PASS_WORDS words. A pass is valid when its
// last word has arrived, and is stable until it is accepted. The number of passes is the requested one. The module
// waits only for a word or for the consumer of the pass.
module read_program_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input logic [31:0] first,
    input logic [31:0] count,
    input logic command_valid,
    input logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    input logic word_valid,
    input logic word_ready,
    input logic pass_valid,
    input logic pass_ready,
    input pass_t pass,
    input logic idle,
    input logic [31:0] remaining,
    input countdown_t words
);
    logic began = 1'b0, busy, asked, waited, command_waited;
    logic [31:0] given, total, came, address, was_address;
    pass_t was_pass;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        was_pass <= pass;
        was_address <= command_address;
        waited <= pass_valid && !pass_ready && !reset;
        command_waited <= command_valid && !command_ready && !reset;
        if (reset) busy <= 1'b0;
        else if (!busy) begin
            busy <= start && count != 0;
            total <= count;
            address <= address_product(first, PASS_WORDS);
            {given, came, asked} <= '0;
        end else begin
            if (command_valid && command_ready) asked <= 1'b1;
            if (word_valid && word_ready) came <= came + 1;
            if (pass_valid && pass_ready) begin
                {came, asked} <= '0;
                given <= given + 1;
                address <= address + PASS_WORDS;
                if (given + 1 == total) busy <= 1'b0;
            end
        end
    end
    always_comb if (!began) assume (reset);
    always_comb if (began) begin
        assert (idle == !busy && command_words == PASS_WORDS);
        assert (command_valid == (busy && !asked) && word_ready == (busy && asked && came < PASS_WORDS));
        assert (pass_valid == (busy && asked && came == PASS_WORDS));
        if (command_valid) assert (command_address == address);
        if (waited) assert (pass_valid && pass == was_pass);
        if (command_waited) assert (command_valid && command_address == was_address);
        if (busy) begin
            assert (given < total && remaining == total - given && came <= PASS_WORDS && (asked || came == 0));
            assert (command_address == address);
            assert (words.initial_remaining == PASS_WORDS - 1 && !words.initial_last && words.last == (words.remaining == 0));
            assert (words.remaining == (came == PASS_WORDS ? PASS_WORDS - 1 : PASS_WORDS - 1 - came));
        end
    end
endmodule
bind read_program read_program_proof proof (.*, .idle(state == IDLE));

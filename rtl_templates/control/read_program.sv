// Reads passes ``first`` … ``first + count − 1`` of the layer program in DDR (a pass is one convolution), one pass
// ahead of the reader of its output.
module read_program
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input logic [31:0] first,
    input logic [31:0] count,
    output logic command_valid,
    input logic command_ready,
    output logic [31:0] command_address,
    output logic [31:0] command_words,
    input logic word_valid,
    output logic word_ready,
    input logic [31:0] word,
    output logic pass_valid,
    input logic pass_ready,
    output pass_t pass
);
    typedef enum logic [1:0] {IDLE, ASK, READ, GIVE} state_t;
    state_t state;
    logic [31:0] left;
    countdown_t words;

    assign command_valid = state == ASK;
    assign command_words = PASS_WORDS;
    assign word_ready = state == READ;
    assign pass_valid = state == GIVE;

    always_ff @(posedge clk) begin
        if (word_valid && word_ready) pass <= {pass[$bits(pass_t)-33:0], word};
        if (reset) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                state <= count == 0 ? IDLE : ASK;
                left <= count;
                command_address <= times(first, PASS_WORDS);
                words <= begun(PASS_WORDS);
            end
            ASK: if (command_ready) state <= READ;
            READ: if (word_valid) begin
                words <= counted(words);
                if (words.last) state <= GIVE;
            end
            default: if (pass_ready) begin
                state <= left == 1 ? IDLE : ASK;
                left <= left - 1;
                command_address <= command_address + PASS_WORDS;
            end
        endcase
    end
endmodule

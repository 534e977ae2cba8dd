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
    typedef enum logic [1:0] {IDLE, REQUEST, READ, DELIVER} state_t;
    state_t state;
    logic [31:0] remaining;
    countdown_t words;

    assign command_valid = state == REQUEST;
    assign command_words = PASS_WORDS;
    assign word_ready = state == READ;
    assign pass_valid = state == DELIVER;

    always_ff @(posedge clk) begin
        if (word_valid && word_ready) pass <= {pass[$bits(pass_t)-33:0], word};
        if (reset) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                state <= count == 0 ? IDLE : REQUEST;
                remaining <= count;
                command_address <= address_product(first, PASS_WORDS);
                words <= start_countdown(PASS_WORDS);
            end
            REQUEST: if (command_ready) state <= READ;
            READ: if (word_valid) begin
                words <= next_countdown(words);
                if (words.last) state <= DELIVER;
            end
            default: if (pass_ready) begin
                state <= remaining == 1 ? IDLE : REQUEST;
                remaining <= remaining - 1;
                command_address <= command_address + PASS_WORDS;
            end
        endcase
    end
endmodule

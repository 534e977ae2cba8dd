// Bound into every FIFO. The proof tracks any one word. The word is output unchanged, after the words before it and no
// others. An output word is stable until it is taken. There is always a word to take or room for one.
module fifo_proof #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 4,
    parameter int SLACK = 0,
    localparam int POINTER_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1,
    localparam int COUNT_BITS = $clog2(DEPTH + 1)
) (
    input logic clk,
    input logic reset,
    input logic in_valid,
    input logic in_ready,
    input logic [WIDTH-1:0] in_data,
    input logic out_valid,
    input logic out_ready,
    input logic [WIDTH-1:0] out_data,
    input logic [WIDTH-1:0] queue[DEPTH],
    input logic [POINTER_BITS-1:0] read_pointer,
    input logic [POINTER_BITS-1:0] write_pointer,
    input logic [COUNT_BITS-1:0] count
);
    typedef enum logic [1:0] {BEFORE, INSIDE, AFTER} phase_t;
    logic began = 1'b0, waited, push, pop;
    logic [7:0] held;  // words given and not taken, counted here
    logic choose;  // chooses the tracked word; undriven, so that the solver may choose any
    logic [7:0] ahead;  // words before the tracked word in the queue
    phase_t phase;
    logic [WIDTH-1:0] word, shown;
    logic [SLACK:0] asked;  // in_ready of earlier cycles
    assign push = in_valid && (SLACK > 0 || in_ready);
    assign pop = out_valid && out_ready;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        waited <= out_valid && !out_ready && !reset;
        shown <= out_data;
        asked <= reset ? '0 : (SLACK + 1)'({asked, in_ready});
        if (reset) begin
            held <= '0;
            phase <= BEFORE;
        end else begin
            held <= held + 8'(push) - 8'(pop);
            if (push && phase == BEFORE && choose) begin
                phase <= INSIDE;
                word <= in_data;
                ahead <= held - 8'(pop);
            end
            if (pop && phase == INSIDE) begin
                ahead <= ahead - 8'd1;
                if (ahead == 0) phase <= AFTER;
            end
        end
    end

    function automatic int place(int from, int words);
        place = from + words >= DEPTH ? from + words - DEPTH : from + words;
    endfunction

    always_comb if (!began) assume (reset);
    // The producer: with SLACK it gives a word only if in_ready was 1 SLACK cycles before, or LATE cycles if LATE is
    // less. With PLACE_KNOWN it has another reason to know that there is room.
    if (SLACK > 0) begin : slack
`ifdef PLACE_KNOWN
        always_comb if (began && !reset) `PRODUCER (!in_valid || 32'(count) < DEPTH);
`else
        logic [7:0] pending;
        always_comb begin
            pending = '0;
            for (int i = 0; i < `LATE; i++) pending = pending + 8'(asked[i]);
        end
        always_comb if (began && !reset) `PRODUCER (!in_valid || asked[`LATE-1]);
        always_comb if (began) assert (32'(held) + 32'(pending) <= DEPTH);
`endif
    end
    always_comb if (began) begin
        if (!reset) assert (in_ready || out_valid || SLACK >= DEPTH);
        assert (32'(held) == 32'(count) && count <= COUNT_BITS'(DEPTH));
        assert (32'(read_pointer) < DEPTH && 32'(write_pointer) == place(32'(read_pointer), 32'(count)));
        if (phase == INSIDE) begin
            assert (ahead < held);
            if (ahead == 0) assert (out_valid);
`ifndef COUNTS_ALONE
            assert (queue[place(32'(read_pointer), 32'(ahead))] == word);
            if (ahead == 0) assert (out_data == word);
`endif
        end
        if (waited) assert (out_valid);
`ifndef COUNTS_ALONE
        if (waited) assert (out_data == shown);
`endif
    end
endmodule
bind fifo fifo_proof #(.WIDTH(WIDTH), .DEPTH(DEPTH), .SLACK(SLACK)) proof (.*);

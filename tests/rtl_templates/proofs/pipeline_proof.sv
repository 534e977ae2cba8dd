// Bound into a pipeline without stalls, before a FIFO with slack. The words that it took and has not given are the
// words in its stages and in the FIFO. Together with the proof of the FIFO, whose producer is the pipeline, no word is
// lost, doubled or overtaken.
module pipeline_proof #(
    parameter int LATENCY = 3
) (
    input logic clk,
    input logic reset,
    input logic took,
    input logic gave,
    input logic [LATENCY-1:0] valid,
    input logic [7:0] held,  // by the FIFO
    input logic [LATENCY:0] asked,  // whether it had room, in the cycles before
    input logic running,  // groups may arrive
    input logic ready
);
    logic began = 1'b0;
    logic [7:0] balance, under_way;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        balance <= reset ? '0 : balance + 8'(took) - 8'(gave);
    end
    always_comb begin
        under_way = '0;
        for (int i = 0; i < LATENCY; i++) under_way = under_way + 8'(valid[i]);
        if (!began) assume (reset);
    end
    always_comb if (began) begin
        assert (balance == under_way + held);
        assert ((valid & ~asked[LATENCY-1:0]) == '0);
        if (running && !reset && balance == 0) assert (ready);  // an empty pipeline accepts a word
    end
endmodule

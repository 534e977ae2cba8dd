// Bound into axi_read. At most OUTSTANDING bursts are unanswered. Their count agrees with a slave that answers each
// burst once. A request is stable until it is accepted.
module axi_read_proof #(
    parameter int OUTSTANDING = 8,
    parameter int OPEN_BITS = $clog2(OUTSTANDING + 1)
) (
    input logic clk,
    input logic reset,
    input logic ar_valid,
    input logic ar_ready,
    input logic [63:0] ar_address,
    input logic [7:0] ar_length,
    input logic r_valid,
    input logic r_ready,
    input logic r_last,
    input logic burst_valid,
    input logic [OPEN_BITS-1:0] open_bursts
);
    logic began = 1'b0, waited;
    logic [15:0] owed;  // bursts that the slave has to answer
    logic [71:0] shown;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        waited <= ar_valid && !ar_ready && !reset;
        shown <= {ar_address, ar_length};
        if (reset) owed <= '0;
        else owed <= owed + 16'(ar_valid && ar_ready) - 16'(r_valid && r_ready && r_last);
    end

    always_comb begin
        if (!began) assume (reset);
        if (began && r_valid) assume (owed != 0);
    end
    always_comb if (began) begin
        assert (32'(owed) == 32'(open_bursts) && owed <= 16'(OUTSTANDING));
        if (waited) assert (ar_valid && {ar_address, ar_length} == shown);
        if (burst_valid && !ar_valid) assert (owed == 16'(OUTSTANDING));  // it waits only for an answer
    end
endmodule
bind axi_read axi_read_proof #(.OUTSTANDING(OUTSTANDING)) proof (.*);
bind axi_read axi_bursts_proof #(.BYTES(BYTES), .LENGTH(LENGTH), .GATED(1)) requests (
    .burst_valid(ar_valid), .burst_ready(ar_ready), .burst_address(ar_address), .burst_length(ar_length),
    .remaining(bursts.remaining), .busy(bursts.busy), .*);

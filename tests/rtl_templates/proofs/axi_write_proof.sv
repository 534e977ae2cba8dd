// Bound into axi_write. A burst has the number of beats that its length says, with WLAST at the last beat only. At most
// OUTSTANDING bursts are unanswered. ``idle`` means that nothing is in flight. A request and a beat are stable until
// they are accepted.
module axi_write_proof #(
    parameter int BYTES = 4,
    parameter int OUTSTANDING = 8,
    parameter int OPEN_BITS = $clog2(OUTSTANDING + 1)
) (
    input logic clk,
    input logic reset,
    input logic in_valid,
    input logic in_ready,
    input logic [8*BYTES-1:0] in_data,
    input logic idle,
    input logic aw_valid,
    input logic aw_ready,
    input logic [63:0] aw_address,
    input logic [7:0] aw_length,
    input logic w_valid,
    input logic w_ready,
    input logic w_last,
    input logic [8*BYTES-1:0] w_data,
    input logic b_valid,
    input logic b_ready,
    input logic burst_valid,
    input logic [OPEN_BITS-1:0] open_bursts,
    input logic length_valid,
    input logic burst_ends,
    input logic [7:0] length,
    input logic [7:0] beat,
    input logic [OPEN_BITS-1:0] lengths_held
);
    logic began = 1'b0, aw_waited, w_waited, in_waited;
    logic [15:0] asked, complete;  // bursts with beats missing; complete bursts without an answer
    logic [8:0] beats;  // written beats of the current burst
    logic [71:0] aw_shown;
    logic [8*BYTES:0] w_shown;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        aw_waited <= aw_valid && !aw_ready && !reset;
        w_waited <= w_valid && !w_ready && !reset;
        in_waited <= in_valid && !in_ready && !reset;
        aw_shown <= {aw_address, aw_length};
        w_shown <= {in_data, w_last};
        if (reset) {asked, complete, beats} <= '0;
        else begin
            asked <= asked + 16'(aw_valid && aw_ready) - 16'(w_valid && w_ready && w_last);
            complete <= complete + 16'(w_valid && w_ready && w_last) - 16'(b_valid && b_ready);
            if (w_valid && w_ready) beats <= w_last ? '0 : beats + 9'd1;
        end
    end

    always_comb begin
        if (!began) assume (reset);
        if (began && b_valid) assume (complete != 0);
        if (began && in_waited) assume (in_valid && in_data == w_shown[8*BYTES:1]);
    end
    always_comb if (began) begin
        assert (32'(asked) + 32'(complete) == 32'(open_bursts) && 32'(open_bursts) <= OUTSTANDING);
        assert (32'(asked) == 32'(lengths_held) && length_valid == (asked != 0) && beats == 9'(beat));
        if (length_valid) assert (beats <= 9'(length));
        if (!length_valid) assert (!w_valid && beats == 0);
        if (w_valid) assert (w_last == (beats == 9'(length)) && w_data == in_data);
        if (aw_waited) assert (aw_valid && {aw_address, aw_length} == aw_shown);
        if (w_waited) assert (w_valid && {w_data, w_last} == w_shown);
        if (idle) assert (asked == 0 && complete == 0 && !burst_valid);
        if (burst_valid && !aw_valid) assert (asked + complete == 16'(OUTSTANDING));
    end
endmodule
bind axi_write axi_write_proof #(.BYTES(BYTES), .OUTSTANDING(OUTSTANDING)) proof (.*, .lengths_held(lengths.count));
bind axi_write axi_bursts_proof #(.BYTES(BYTES), .LENGTH(LENGTH), .GATED(1)) requests (
    .burst_valid(aw_valid), .burst_ready(aw_ready), .burst_address(aw_address), .burst_length(aw_length),
    .remaining(bursts.remaining), .busy(bursts.busy), .*);

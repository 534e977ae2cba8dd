// Bound into pe_array. A step takes activations and weights together, and only if every row has room for the sums of
// all steps in the pipeline. Every ``steps`` steps give the sums of all rows together, once. An array with an empty
// pipeline takes a step or offers sums. An array whose sums are always taken never waits.
module pe_array_proof
    import systolic_geometry::*;
#(
    parameter int LATENCY = 6,
    parameter int ROOM = 8
) (
    input logic clk,
    input logic reset,
    input logic start,
    input number_t steps,
    input logic activations_valid,
    input logic activations_ready,
    input logic weights_valid,
    input logic weights_ready,
    input logic sums_valid,
    input logic sums_ready,
    // inside
    input logic first,
    input countdown_t position_steps,
    input logic [LATENCY-1:0][2:0] stages,  // valid, first, last
    input logic [ROWS-1:0][2:0] control,
    input logic [ROWS-1:0] complete,  // sums that enter a row's FIFO
    input logic [ROWS-1:0][7:0] counts  // words in it
);
    logic began = 1'b0, started, was_waiting, eager;
    number_t step, was_steps;  // of a position
    logic issue, ends;
    logic [7:0] balance;  // complete positions whose sums were not taken
    logic [LATENCY:0] asked;
    logic [7:0] pending;
    logic [ROWS-1:0][7:0] under_way;
    assign issue = activations_valid && activations_ready;
    assign ends = issue && step == steps - 1;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        was_steps <= steps;
        started <= start;
        was_waiting <= sums_valid && !sums_ready && !reset;
        asked <= reset ? '0 : (LATENCY + 1)'({asked, 32'(counts[0]) < ROOM});
        eager <= reset || (eager && sums_ready);
        step <= reset || start ? 0 : !issue ? step : ends ? 0 : step + 1;
        balance <= reset ? '0 : balance + 8'(ends) - 8'(sums_valid && sums_ready);
    end

    logic [ROWS-1:0][7:0] shifted;  // in the control registers between the rows
    always_comb begin
        pending = '0;
        for (int i = 0; i <= LATENCY; i++) pending = pending + 8'(asked[i]);
        for (int m = 0; m < ROWS; m++) begin
            shifted[m] = m == 0 ? '0 : shifted[m-1];
            if (m > 0 && m % DSP_CLOCK == DSP_CLOCK - 1) shifted[m] = shifted[m] + 8'(control[m][2] && control[m][0]);
            under_way[m] = shifted[m] + 8'(complete[m]);
            for (int i = 0; i < LATENCY; i++) under_way[m] = under_way[m] + 8'(stages[i][2] && stages[i][0]);
        end
    end

    always_comb begin
        // A reset ends when the pipelines are empty.
        assume (reset == !began);
        if (reset) assume (under_way == '0);
        if (reset) for (int i = 0; i < LATENCY; i++) assume (!stages[i][2]);
        assume (steps > 0);
        if (began && !start) assume (steps == was_steps);
        if (start) assume (step == 0 && !issue);
    end
    always_comb if (began) begin
        assert (activations_ready == weights_ready);
        if (activations_ready) assert (activations_valid && weights_valid);
        assert (step >= 0 && step < was_steps);
        assert (first == (step == 0) && position_steps.last == (step == was_steps - 1) && position_steps.remaining == was_steps - 1 - step);
        assert (position_steps.initial_remaining == was_steps - 1 && position_steps.initial_last == (was_steps == 1));
        for (int m = 0; m < ROWS; m++) assert (counts[m] + under_way[m] == balance);
        for (int i = 0; i < LATENCY; i++) assert (!stages[i][2] || asked[i]);
        if (complete[0]) assert (asked[LATENCY]);
        assert (32'(counts[0]) + 32'(pending) <= ROOM + LATENCY + 1);
        if (was_waiting) assert (sums_valid);
        // The reasons for waiting.
        if (activations_valid && weights_valid && !activations_ready) assert (32'(counts[0]) >= ROOM);
        if (balance != 0 && under_way == '0) assert (sums_valid);
        for (int m = 1; m < ROWS; m++)
            assert (complete[m-1] == (m % DSP_CLOCK == DSP_CLOCK - 1 ? control[m][2] && control[m][0] : complete[m]));
        if (eager) assert (counts[ROWS-1] <= 1);
        if (eager && !start && activations_valid && weights_valid) assert (activations_ready);
    end
endmodule
bind pe_array pe_array_proof #(.LATENCY(LATENCY), .ROOM(ROW_WAIT)) proof (.*, .stages(issued.some.stages),
    .complete({rows[2].row_sums_valid, rows[1].row_sums_valid, rows[0].row_sums_valid}),
    .counts({8'(rows[2].complete.count), 8'(rows[1].complete.count), 8'(rows[0].complete.count)}));

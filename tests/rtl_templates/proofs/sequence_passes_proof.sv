// Bound into sequence_passes. The passes of the program are started in order, each once and for one cycle. A pass is
// started only if every module has reported the end of the pass before, after that pass was started. After the
// requested number of passes ``done`` is given once. A pass is valid a cycle before its start, and is stable until it
// has ended. The plan says what the next pass loads.
module sequence_passes_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input logic done,
    input logic [31:0] first,
    input logic [31:0] count,
    input logic [31:0] current,
    input logic next_valid,
    input logic next_ready,
    input pass_t next,
    input logic pass_start,
    input pass_t pass,
    input weight_plan_t plan,
    input logic pass_done,
    input logic pass_ended,
    input logic idle,
    input logic plans,
    input logic runs,
    input logic [31:0] index
);
    logic began = 1'b0, busy, runs_one, was_start, has_pass, finishes, was_done, had_pass, waits;
    logic [31:0] taken, started, ended;
    pass_t was_pass, was_next;
    weight_plan_t was_plan;
    logic next_waited;
    assign runs_one = busy && started != ended;
    assign finishes = runs_one && pass_done;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        was_pass <= pass;
        was_next <= next;
        was_plan <= plan;
        next_waited <= next_valid && !next_ready && !reset;
        was_start <= pass_start && !reset;
        was_done <= finishes && !reset;
        had_pass <= has_pass && !reset;
        if (reset) begin
            {busy, has_pass} <= '0;
        end else if (start && !busy) begin
            busy <= count != 0;
            {taken, started, ended} <= '0;
            has_pass <= 1'b0;
        end else if (busy) begin
            if (next_valid && next_ready) begin
                taken <= taken + 1;
                has_pass <= 1'b1;
            end
            if (pass_start) started <= started + 1;
            if (finishes) begin
                ended <= ended + 1;
                has_pass <= 1'b0;
                if (ended + 1 == count) busy <= 1'b0;
            end
        end
    end
    logic was_busy, empty_start;
    always_ff @(posedge clk) begin
        was_busy <= busy && !reset;
        empty_start <= start && !busy && count == 0 && !reset;
    end
    logic [31:0] was_first, was_count;
    always_ff @(posedge clk) begin
        was_first <= first;
        was_count <= count;
    end

    always_comb begin
        if (!began) assume (reset);
        if (began && busy) assume (first == was_first && count == was_count && !start);
        if (began && next_waited) assume (next_valid && next == was_next);
    end
    always_comb if (began) begin
        assert (idle == !busy);
        assert (!pass_start || busy);
        assert (!next_ready || (busy && !has_pass));
        assert (done == (was_busy && !busy && was_done) || empty_start);
        assert (pass_ended == was_done);
        if (busy) begin
            assert (ended < count && started <= count && started - ended <= 1 && taken - ended == 32'(has_pass));
            assert (index == ended && (!runs_one || has_pass) && runs == runs_one);
            if (has_pass) assert (current == first + ended);
            if (pass_start) assert (started == ended && has_pass && had_pass && !was_start && (ended + 1 == count || next_valid));
            if (had_pass && has_pass) assert (pass == was_pass);
            if (pass_start || runs_one) begin
                assert (plan.first == (ended == 0) && plan.loads == number_t'(pass.tile_loads - 1));
                assert (plan.next_beats == (ended + 1 == count ? 0 : next.tile_beats));
                if (ended + 1 != count) assert (next_valid && plan.next_base == next.weights_base);
            end
            // The module waits for the program or for the pass.
            assert (next_ready || pass_start || runs_one || (plans && (next_valid || ended + 1 == count || has_pass)));
        end
    end
endmodule
bind sequence_passes sequence_passes_proof proof (
    .*, .idle(state == IDLE), .plans(state == PLAN), .runs(state == RUN));

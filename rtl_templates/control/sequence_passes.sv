// Runs the passes (convolutions) of the layer program, one after the other. A pass starts when the pass before has
// ended in every module. The next pass is already known at that time, because its first weights are loaded during this
// pass.
module sequence_passes
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    output logic done,  // for one cycle, at the end
    input logic [31:0] first,
    input logic [31:0] count,
    output logic [31:0] current,  // index of the running pass
    output logic current_written,
    input logic next_valid,
    output logic next_ready,
    input pass_t next,
    output logic pass_start,
    output pass_t pass,
    output weight_plan_t plan,
    input logic pass_done,  // every module has finished
    output logic pass_ended  // for one cycle
);
    typedef enum logic [2:0] {IDLE, TAKE, PLAN, BEGIN, RUN} state_t;
    state_t state;
    logic [31:0] index;
    logic last;
    assign last = index + 1 == count;

    // The next pass stays in the FIFO until this pass has ended.
    assign next_ready = state == TAKE;
    assign pass_start = state == BEGIN;
    assign current_written = state == PLAN;

    always_ff @(posedge clk) begin
        done <= 1'b0;
        pass_ended <= 1'b0;
        if (reset) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                index <= 0;
                if (count == 0) done <= 1'b1;
                else state <= TAKE;
            end
            TAKE: if (next_valid) begin
                pass <= next;
                current <= first + index;
                state <= PLAN;
            end
            PLAN: if (last || next_valid) begin
                plan.first <= index == 0;
                plan.loads <= pass.tile_loads - 1;
                plan.next_beats <= last ? 0 : next.tile_beats;
                plan.next_base <= next.weights_base;
                state <= BEGIN;
            end
            BEGIN: state <= RUN;
            default: if (pass_done) begin
                pass_ended <= 1'b1;
                index <= index + 1;
                done <= last;
                state <= last ? IDLE : TAKE;
            end
        endcase
    end
endmodule

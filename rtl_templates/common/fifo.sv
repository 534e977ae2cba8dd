// A first-word fall-through FIFO, with valid and ready on both sides.
//
// in_ready falls when SLACK places are left. So a pipeline of SLACK stages that checks in_ready at its input never
// overflows the FIFO, and needs neither a stall nor a clock enable.
module fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 4,
    parameter int SLACK = 0
) (
    input logic clk,
    input logic reset,
    input logic in_valid,
    output logic in_ready,
    input logic [WIDTH-1:0] in_data,
    output logic out_valid,
    input logic out_ready,
    output logic [WIDTH-1:0] out_data
);
    localparam int POINTER_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1;
    localparam int COUNT_BITS = $clog2(DEPTH + 1);
    localparam logic [POINTER_BITS-1:0] LAST = POINTER_BITS'(DEPTH - 1);
    localparam logic [COUNT_BITS-1:0] ROOM = COUNT_BITS'(DEPTH - SLACK);

    (* ram_style = "distributed" *) logic [WIDTH-1:0] queue[DEPTH];
    logic [POINTER_BITS-1:0] read_pointer, write_pointer;
    logic [COUNT_BITS-1:0] count;
    logic pop;

    assign in_ready = count < ROOM;
    assign out_valid = count != '0;
    assign out_data = queue[read_pointer];
    assign pop = out_valid && out_ready;

    // A producer with SLACK has checked in_ready in an earlier cycle, so that in_ready does not matter now.
    logic push;
    assign push = in_valid && (SLACK > 0 || in_ready);

    always_ff @(posedge clk) begin
        if (push) queue[write_pointer] <= in_data;
    end

    always_ff @(posedge clk) begin
        if (reset) begin
            read_pointer <= '0;
            write_pointer <= '0;
            count <= '0;
        end else begin
            if (push) write_pointer <= write_pointer == LAST ? '0 : write_pointer + 1'b1;
            if (pop) read_pointer <= read_pointer == LAST ? '0 : read_pointer + 1'b1;
            count <= count + COUNT_BITS'(push) - COUNT_BITS'(pop);
        end
    end
endmodule

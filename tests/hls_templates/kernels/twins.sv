// RTL twins of kernels: the same processes with registers and handshakes, no formula of time among them.
// tests/systolic/test_rtl_twins.py writes the top that instantiates them. An unused port of a loop gets any signal.
`timescale 1ns / 1ns

// The FIFO that Vitis HLS makes of a small stream: both flags come from registers, so that a word is seen a cycle
// after it is written, and a slot is free a cycle after it is read.
module fifo #(parameter int DEPTH = 2, WIDTH = 32) (
    input logic clk, rst, write, read,
    input logic [WIDTH-1:0] din,
    output logic full_n, empty_n,
    output logic [WIDTH-1:0] dout);
    logic [WIDTH-1:0] slots[DEPTH];
    int count, first;
    assign full_n = count < DEPTH;
    assign empty_n = count > 0;
    assign dout = slots[first];
    always_ff @(posedge clk)
        if (rst) begin
            count <= 0;
            first <= 0;
        end else begin
            if (write) slots[(first + count) % DEPTH] <= din;
            if (read) first <= (first + 1) % DEPTH;
            count <= count + int'(write) - int'(read);
        end
endmodule

// A pipelined loop of COUNT iterations that stalls as a whole. Port p takes part in iteration i where
// i % PERIOD == PHASE. The data of input 0 (or the iteration's number) goes to both outputs.
module loop #(parameter int COUNT = 1, II = 1, DEPTH = 1, INPUTS = 1, OUTPUTS = 1,
              IN_PERIOD[2] = '{1, 1}, IN_PHASE[2] = '{0, 0}, OUT_PERIOD[2] = '{1, 1}, OUT_PHASE[2] = '{0, 0}) (
    input logic clk, rst,
    input logic [31:0] in_data[2], input logic in_valid[2], output logic in_read[2],
    output logic [31:0] out_data[2], output logic out_write[2], input logic out_ready[2],
    output logic done);
    logic entered;  // the state before the loop
    int issued, phase;
    logic valid[DEPTH];
    int number[DEPTH];
    logic [31:0] data[DEPTH];
    logic start, go;
    logic wants_in[2], wants_out[2];

    assign start = entered && issued < COUNT && phase == 0;
    always_comb begin
        valid[0] = start;
        number[0] = issued;
        data[0] = INPUTS > 0 ? in_data[0] : issued;
        go = 1;
        for (int p = 0; p < 2; p++) begin
            wants_in[p] = p < INPUTS && start && issued % IN_PERIOD[p] == IN_PHASE[p];
            wants_out[p] = p < OUTPUTS && valid[DEPTH-1] && number[DEPTH-1] % OUT_PERIOD[p] == OUT_PHASE[p];
            if (wants_in[p] && !in_valid[p]) go = 0;
            if (wants_out[p] && !out_ready[p]) go = 0;
        end
        for (int p = 0; p < 2; p++) begin
            in_read[p] = wants_in[p] && go;
            out_write[p] = wants_out[p] && go;
            out_data[p] = data[DEPTH-1];
        end
    end
    always_ff @(posedge clk)
        if (rst) begin
            entered <= 0;
            issued <= 0;
            phase <= 0;
        end else begin
            entered <= 1;
            if (entered && go) begin
                phase <= issued < COUNT && phase + 1 < II ? phase + 1 : 0;
                if (start) issued <= issued + 1;
            end
        end
    for (genvar s = 1; s < DEPTH; s++)
        always_ff @(posedge clk)
            if (rst) valid[s] <= 0;
            else if (entered && go) begin
                valid[s] <= valid[s-1];
                number[s] <= number[s-1];
                data[s] <= data[s-1];
            end
    always_ff @(posedge clk)
        if (rst) done <= 0;
        else if (valid[DEPTH-1] && go && number[DEPTH-1] == COUNT - 1) done <= 1;
endmodule

// source → FIFO → relay → FIFO → sink
module chain #(parameter int COUNT = 8, RELAY_II = 1, RELAY_DEPTH = 1, SINK_II = 1, FIRST = 2, SECOND = 2) (
    input logic clk, rst, output logic done);
    logic [31:0] source_data[2], relay_data[2], unused_data[2], relay_in[2], sink_in[2];
    logic source_write[2], source_ready[2], relay_valid[2], relay_read[2], relay_write[2], relay_ready[2];
    logic sink_valid[2], sink_read[2], no_read[2], no_write[2], source_done, relay_done, sink_done;
    assign {source_ready[1], relay_valid[1], relay_ready[1], sink_valid[1]} = '0;
    assign {relay_in[1], sink_in[1]} = '0;
    loop #(.COUNT(COUNT), .INPUTS(0)) source (.clk, .rst, .in_data(sink_in), .in_valid(sink_valid), .in_read(no_read),
        .out_data(source_data), .out_write(source_write), .out_ready(source_ready), .done(source_done));
    fifo #(.DEPTH(FIRST)) first (.clk, .rst, .write(source_write[0]), .din(source_data[0]), .full_n(source_ready[0]),
        .read(relay_read[0]), .empty_n(relay_valid[0]), .dout(relay_in[0]));
    loop #(.COUNT(COUNT), .II(RELAY_II), .DEPTH(RELAY_DEPTH)) relay (.clk, .rst, .in_data(relay_in),
        .in_valid(relay_valid), .in_read(relay_read), .out_data(relay_data), .out_write(relay_write),
        .out_ready(relay_ready), .done(relay_done));
    fifo #(.DEPTH(SECOND)) second (.clk, .rst, .write(relay_write[0]), .din(relay_data[0]), .full_n(relay_ready[0]),
        .read(sink_read[0]), .empty_n(sink_valid[0]), .dout(sink_in[0]));
    loop #(.COUNT(COUNT), .II(SINK_II), .OUTPUTS(0)) sink (.clk, .rst, .in_data(sink_in), .in_valid(sink_valid),
        .in_read(sink_read), .out_data(unused_data), .out_write(no_write), .out_ready(relay_ready), .done(sink_done));
    assign done = source_done && relay_done && sink_done;
    int expected;
    always_ff @(posedge clk)
        if (rst) expected <= 0;
        else if (sink_read[0]) begin
            if (sink_in[0] != expected) $fatal(1, "element %0d arrived as %0d", expected, sink_in[0]);
            expected <= expected + 1;
        end
endmodule

// fork → left → gather (four to one) → sums → join ← right ← fork
module reconvergent #(parameter int COUNT = 16, RIGHT = 4) (input logic clk, rst, output logic done);
    logic [31:0] fork_data[2], gather_data[2], gather_in[2], join_in[2], unused_data[2];
    logic fork_write[2], fork_ready[2], gather_valid[2], gather_read[2], gather_write[2], gather_ready[2];
    logic join_valid[2], join_read[2], no_read[2], no_write[2], fork_done, gather_done, join_done;
    assign {gather_valid[1], gather_ready[1], gather_in[1]} = '0;
    loop #(.COUNT(COUNT), .INPUTS(0), .OUTPUTS(2)) forks (.clk, .rst, .in_data(join_in), .in_valid(join_valid),
        .in_read(no_read), .out_data(fork_data), .out_write(fork_write), .out_ready(fork_ready), .done(fork_done));
    fifo #(.DEPTH(2)) left (.clk, .rst, .write(fork_write[0]), .din(fork_data[0]), .full_n(fork_ready[0]),
        .read(gather_read[0]), .empty_n(gather_valid[0]), .dout(gather_in[0]));
    fifo #(.DEPTH(RIGHT)) right (.clk, .rst, .write(fork_write[1]), .din(fork_data[1]), .full_n(fork_ready[1]),
        .read(join_read[1]), .empty_n(join_valid[1]), .dout(join_in[1]));
    loop #(.COUNT(COUNT), .OUT_PERIOD('{4, 1}), .OUT_PHASE('{3, 0})) gather (.clk, .rst, .in_data(gather_in),
        .in_valid(gather_valid), .in_read(gather_read), .out_data(gather_data), .out_write(gather_write),
        .out_ready(gather_ready), .done(gather_done));
    fifo #(.DEPTH(2)) sums (.clk, .rst, .write(gather_write[0]), .din(gather_data[0]), .full_n(gather_ready[0]),
        .read(join_read[0]), .empty_n(join_valid[0]), .dout(join_in[0]));
    loop #(.COUNT(COUNT), .INPUTS(2), .OUTPUTS(0), .IN_PERIOD('{4, 1})) joins (.clk, .rst, .in_data(join_in),
        .in_valid(join_valid), .in_read(join_read), .out_data(unused_data), .out_write(no_write),
        .out_ready(fork_ready), .done(join_done));
    assign done = fork_done && gather_done && join_done;
endmodule

// A row of output-stationary PEs: activations move one PE per cycle, PE j works at stage j, sums follow at stage PES.
module row #(parameter int TILES = 4, STEPS = 8, PES = 4, SINK_II = 1, FIRST = 2, SECOND = 2) (
    input logic clk, rst, output logic done);
    localparam int COUNT = TILES * STEPS;
    logic [31:0] a_data[2], unused_data[2], sink_in[2];
    logic a_write[2], a_ready[2], sink_valid[2], sink_read[2], no_read[2], no_write[2], a_done, sink_done;
    logic [31:0] a;
    logic a_valid, a_read, s_ready, s_wants, s_write, go, start, entered;
    int issued, step[PES+1], moving[PES], sum[PES];
    logic valid[PES+1];
    assign {a_ready[1], sink_valid[1], sink_in[1]} = '0;
    loop #(.COUNT(COUNT), .INPUTS(0)) source (.clk, .rst, .in_data(sink_in), .in_valid(sink_valid), .in_read(no_read),
        .out_data(a_data), .out_write(a_write), .out_ready(a_ready), .done(a_done));
    fifo #(.DEPTH(FIRST)) first (.clk, .rst, .write(a_write[0]), .din(a_data[0]), .full_n(a_ready[0]),
        .read(a_read), .empty_n(a_valid), .dout(a));
    fifo #(.DEPTH(SECOND)) second (.clk, .rst, .write(s_write), .din(sum[PES-1]), .full_n(s_ready),
        .read(sink_read[0]), .empty_n(sink_valid[0]), .dout(sink_in[0]));
    loop #(.COUNT(TILES), .II(SINK_II), .OUTPUTS(0)) sink (.clk, .rst, .in_data(sink_in), .in_valid(sink_valid),
        .in_read(sink_read), .out_data(unused_data), .out_write(no_write), .out_ready(a_ready), .done(sink_done));
    assign start = entered && issued < COUNT;
    assign go = !(start && !a_valid) && !(s_wants && !s_ready);
    assign s_wants = valid[PES] && step[PES] == STEPS - 1;
    assign a_read = start && go;
    assign s_write = s_wants && go;
    assign valid[0] = start;
    assign step[0] = issued % STEPS;
    assign moving[0] = a;
    always_ff @(posedge clk)
        if (rst) begin
            entered <= 0;
            issued <= 0;
        end else begin
            entered <= 1;
            if (a_read) issued <= issued + 1;
        end
    for (genvar j = 0; j < PES; j++)
        always_ff @(posedge clk)
            if (rst) valid[j+1] <= 0;
            else if (go) begin
                valid[j+1] <= valid[j];
                step[j+1] <= step[j];
                if (j + 1 < PES) moving[j+1] <= moving[j];
                if (valid[j]) sum[j] <= (step[j] == 0 ? 0 : sum[j]) + moving[j] * (j + 1);
            end
    assign done = a_done && sink_done;
    int tile;
    always_ff @(posedge clk)
        if (rst) tile <= 0;
        else if (sink_read[0]) begin  // Σ of STEPS numbers from tile · STEPS, times the last PE's weight
            if (sink_in[0] != PES * (STEPS * tile * STEPS + STEPS * (STEPS - 1) / 2)) $fatal(1, "tile %0d is wrong", tile);
            tile <= tile + 1;
        end
endmodule

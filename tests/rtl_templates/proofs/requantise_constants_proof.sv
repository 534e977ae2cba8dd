// Bound into requantise, with two columns. The proof follows the constants of any one channel of the pass. They are the
// constants that arrived for the channel, until the pass ends. They are output together with a sum, a cycle after its
// group was accepted.
module requantise_constants_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input pass_t pass,
    input logic [REQUANTISER_BITS-1:0] constant,
    input group_t group,
    // inside
    input logic [2:0] state,
    input number_t tile,
    input countdown_t remaining,
    input logic [COLUMNS-1:0] column_select,
    input logic uses_table,
    input logic group_taken,
    input logic constant_written,
    input channel_t kept_0,
    input channel_t kept_1,
    input logic [$bits(channel_t)-1:0] memory_0[CHANNEL_TILES],
    input logic [$bits(channel_t)-1:0] memory_1[CHANNEL_TILES]
);
    localparam logic [2:0] IDLE = 0, REQUEST = 1, READ = 2, RUN = 5;
    logic began = 1'b0, known, shown;
    pass_t was_pass;
    number_t came, channel, any;  // constants so far; the channel. any: undriven, so that the solver chooses it
    channel_t its, shown_its, in_memory;
    assign in_memory = channel[0] ? memory_1[channel >>> 1] : memory_0[channel >>> 1];
    assign known = state != IDLE && came > channel;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        was_pass <= pass;
        channel <= began ? channel : any;
        if (state == IDLE) came <= 0;
        else if (constant_written) came <= came + 1;
        if (constant_written && came == channel) its <= channel_t'(constant[$bits(channel_t)-1:0]);
        shown <= began && group_taken && group.channel == channel >>> 1 && known;
        shown_its <= its;
    end
    always_comb begin
        if (!began) assume (reset);
        if (began) assume (pass == was_pass);
        assume (pass.channels > 0 && pass.channels <= COLUMNS * CHANNEL_TILES);
        assume (any >= 0 && any < COLUMNS * CHANNEL_TILES);
        assume (group.channel >= 0 && group.channel < CHANNEL_TILES);
    end
    always_comb if (began) begin
        assert (channel >= 0 && channel < COLUMNS * CHANNEL_TILES);
        assert (state == IDLE || state == REQUEST || state == READ || state == RUN);
        if (state != IDLE) begin
            assert (!uses_table && came >= 0 && came <= pass.channels);
            // The next column, and the next channel tile.
            assert (column_select == (came[0] ? 2'b10 : 2'b01) && tile == came >>> 1);
        end
        if (state == REQUEST) assert (came == 0);
        if (state == REQUEST || state == READ) begin
            assert (came < pass.channels && remaining.remaining == pass.channels - 1 - came);
            assert (remaining.last == (remaining.remaining == 0));
        end
        if (state == RUN) assert (came == pass.channels);  // all have arrived before a group is accepted
        if (group_taken) assert (state == RUN);
        if (known) assert (in_memory == its);
        if (shown) assert ((channel[0] ? kept_1 : kept_0) == shown_its);
    end
endmodule
bind requantise requantise_constants_proof proof (.*, .state(3'(state)), .kept_0(columns[0].channel_constants), .kept_1(columns[1].channel_constants),
    .memory_0(columns[0].constants.memory), .memory_1(columns[1].constants.memory));

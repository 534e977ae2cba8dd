// Bound into load. Every tile feeds the number of steps that the pass says, tile after tile and round after round. Each
// fed step is output once, and a pass ends with its last step. A port's rows arrive in order: every row of the map,
// with all its words. The module waits only for the words of a row or for room in the FIFO.
module load_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input logic done,
    input pass_t pass,
    input logic [MAP_PORTS-1:0] rows_valid,
    input logic [MAP_PORTS-1:0] rows_ready,
    input logic activations_valid,
    input logic activations_ready,
    // inside
    input logic idle,
    input logic begins,
    input logic runs,
    input logic returns,
    input logic follows,  // states
    input logic is_first,
    input logic is_tile,
    input logic is_between,  // phases
    input number_t round,
    input number_t tile,
    input number_t remaining_feeds,
    input logic group_pending,
    input logic feeding,
    input logic loading,
    input logic room,
    input logic [MAP_PORTS-1:0] port_needed,
    input logic [4:0] under_way,  // stages with a step, the first one lowest
    input logic [4:0] asked,
    input logic [7:0] held,
    input countdown_t load_words,
    input countdown_t load_phases
);
    localparam number_t MOST = 1 << ($bits(number_t) - 3);
    logic began = 1'b0, running, started, resident, between;
    pass_t was_pass;
    number_t tiles, rounds, fed;  // completed
    logic [7:0] balance, staged;
    typedef enum logic [1:0] {FIRST, TILE, BETWEEN} phase_t;
    phase_t phase;
    assign resident = pass.inputs_resident != 0;

    logic last_tile, last_round, ends_phase;
    assign last_tile = tiles == pass.row_tiles - 1;
    assign last_round = !resident || rounds == pass.channel_tiles - 1;
    assign between = rounds == 0 && !last_tile && pass.overlap == 0;  // rows are loaded between two tiles
    assign ends_phase = follows;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        started <= start && !reset;
        was_pass <= pass;
        balance <= reset ? '0 : balance + 8'(feeding) - 8'(activations_valid && activations_ready);
        if (reset) running <= 1'b0;
        else if (start && !running) begin
            running <= 1'b1;
            phase <= FIRST;
            {tiles, rounds, fed} <= '0;
        end else if (running) begin
            fed <= ends_phase ? 0 : fed + number_t'(feeding);
            if (ends_phase) begin
                if (phase == TILE && between) phase <= BETWEEN;
                else phase <= TILE;
                if (phase == BETWEEN || (phase == TILE && !between)) begin
                    tiles <= last_tile ? 0 : tiles + 1;
                    if (last_tile) rounds <= rounds + 1;
                    if (last_tile && last_round) running <= 1'b0;
                end
            end
        end
    end
    always_comb begin
        staged = '0;
        for (int i = 0; i < 5; i++) staged = staged + 8'(under_way[i]);
        if (!began) assume (reset);
        if (began && (running || started || start)) assume (pass == was_pass);
        if (began && running) assume (!start);
        assume (pass.row_tiles > 0 && pass.row_tiles < MOST && pass.channel_tiles > 0 && pass.channel_tiles < MOST);
        assume (pass.row_feeds > 0 && pass.row_feeds < MOST && pass.row_words > 0 && pass.phases > 0);
    end
    always_comb if (began) begin
        assert (done == !running && idle == !running && (idle || begins || runs || returns || follows));
        assert (balance == staged + held);
        assert ((under_way & ~asked) == '0);
        if (feeding) assert (running && phase == TILE && fed < pass.row_feeds);
        if (follows) assert (fed == (phase == TILE ? pass.row_feeds : 0));
        if (running) begin
            assert (tile == tiles && round == rounds && is_first == (phase == FIRST) && is_tile == (phase == TILE));
            assert ((is_first || is_tile || is_between) && is_between == (phase == BETWEEN));
            assert (tiles >= 0 && tiles < pass.row_tiles && rounds >= 0);
            assert (rounds == 0 || (resident && rounds < pass.channel_tiles));
            assert (fed == 0 || phase == TILE);
            assert (fed >= 0 && fed <= pass.row_feeds && (!begins || fed == 0));
            if (runs) assert (remaining_feeds == (phase == TILE ? pass.row_feeds - fed : 0));
            if (is_between) assert (rounds == 0 && !last_tile && between);
            if (returns || follows) assert (fed == (phase == TILE ? pass.row_feeds : 0));
        end
        // The reasons for waiting.
        assert (rows_ready == (loading ? port_needed : '0));
        if (runs && fed < pass.row_feeds && phase == TILE && !feeding) assert (!room);
        if (runs && group_pending && !loading) assert ((port_needed & ~rows_valid) != '0);
        if (running && held == 0 && staged == 0) assert (room);
    end
endmodule
bind load load_proof proof (.*,
    .idle(state == IDLE), .begins(state == BEGIN), .runs(state == RUN), .returns(state == REWIND), .follows(state == NEXT),
    .is_first(phase == FIRST), .is_tile(phase == TILE), .is_between(phase == BETWEEN),
    .under_way({s5_valid, s4_valid, s3_valid, s2_valid, s1_valid}), .asked(steps.proof.asked[4:0]), .held(8'(steps.count)));

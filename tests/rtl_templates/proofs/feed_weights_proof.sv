// Bound into feed_weights. The stored steps are consecutive in the buffer. They begin with the tile that is fed or, if
// the tiles are fed again, with the first tile of the pass. A new step is stored after them and overwrites none. A step
// is fed after it has been stored, with the words that arrived for it, in the order and the number of times that the
// pass says. A pass ends after all its feeds and loads, and then only the next pass's first tile is stored. The module
// waits only for a word or for room in the FIFO.
module feed_weights_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input logic done,
    input pass_t pass,
    input weight_plan_t plan,
    input logic beats_valid,
    input logic beats_ready,
    input logic [WORD_BITS-1:0] beats,
    // inside
    input logic idle,
    input logic begins,
    input logic runs,
    input number_t stored,
    input number_t needed,
    input number_t step,
    input number_t store_step,
    input number_t remaining_loads,
    input number_t remaining_feeds,
    input number_t remaining_uses,
    input number_t tile,
    input number_t base,
    input countdown_t tile_steps,
    input logic [BANK_GROUPS-1:0] bank_group,
    input logic feeding,
    input logic room,
    input logic read_valid,
    input logic [BEATS-1:0][WORD_BITS-1:0] read_words,
    input logic [WORD_BITS-1:0] even[WEIGHT_DEPTH],
    input logic [WORD_BITS-1:0] odd[WEIGHT_DEPTH]
);
    // Small numbers keep the products small.
    localparam number_t USES = 7, FEEDS = 31;
    function automatic number_t place(number_t from, number_t steps);
        place = from + steps >= WEIGHT_DEPTH ? from + steps - WEIGHT_DEPTH : from + steps;
    endfunction

    logic began = 1'b0, started, running;
    pass_t was_pass;
    weight_plan_t was_plan;
    number_t first;  // place of the first step that must be kept
    number_t uses, rounds, tile_of_round, fed, fed_of_tile;  // uses and rounds that are left; steps that were fed
    number_t next_steps, owed;  // steps of the next pass; steps that are stored or will arrive
    logic second;  // the second word of a step is next
    logic stores, tile_ends, resident, last_of_round;
    number_t tile_offset, any_rounds;  // any: undriven, so that the solver chooses it
    assign stores = beats_valid && beats_ready;
    assign resident = pass.resident != 0;
    assign last_of_round = tile_of_round == pass.channel_tiles - 1;
    assign tile_offset = resident ? tile_of_round * pass.steps : 0;
    assign tile_ends = running && !begins && fed + number_t'(feeding) == pass.weight_feeds;
    assign running = uses != 0;

    // Any one step, from the cycle in which it is stored.
    logic choose, tracked, tracked_whole;
    number_t ahead;  // steps before it in the buffer
    logic [1:0][WORD_BITS-1:0] words;
    number_t released;
    assign released = !tile_ends ? 0 : !resident ? pass.steps : uses == 1 ? pass.channel_tiles * pass.steps : 0;

    logic loaded;  // an earlier pass has loaded this one's first tile
    always_ff @(posedge clk) if (reset) loaded <= 1'b0; else if (start) loaded <= 1'b1;
    logic was_feeding;
    logic fed_tracked;
    always_ff @(posedge clk) begin
        began <= 1'b1;
        started <= start && !reset;
        was_pass <= pass;
        was_plan <= plan;
        was_feeding <= feeding && !reset;
        fed_tracked <= !reset && feeding && tracked && tracked_whole && tile_offset + fed_of_tile == ahead;
        if (reset) begin
            {uses, tracked} <= '0;
            owed <= 0;
            second <= 1'b0;
        end else if (start) begin
            uses <= pass.tile_uses;
            rounds <= any_rounds;
            {tile_of_round, fed, fed_of_tile, second} <= '0;
            first <= pass.first_step;
            next_steps <= plan.next_beats / BANK_GROUPS;
            owed <= (resident ? pass.channel_tiles : pass.tile_uses) * pass.steps + plan.next_beats / BANK_GROUPS;
            if (plan.first) tracked <= 1'b0;
        end else begin
            if (stores) second <= !second;
            if (feeding) begin
                fed <= fed + 1;
                fed_of_tile <= fed_of_tile == pass.steps - 1 ? 0 : fed_of_tile + 1;
            end
            if (tile_ends) begin
                uses <= uses - 1;
                {fed, fed_of_tile} <= '0;
                tile_of_round <= last_of_round ? 0 : tile_of_round + 1;
                if (last_of_round) rounds <= rounds - 1;
                first <= place(first, released);
                owed <= owed - released;
            end
            if (stores && !second && choose && !tracked) begin
                tracked <= 1'b1;
                tracked_whole <= 1'b0;
                ahead <= stored - released;
                words[0] <= beats;
            end else if (tracked) begin
                ahead <= ahead - released;
                if (ahead < released) tracked <= 1'b0;
                if (stores && !tracked_whole) begin
                    tracked_whole <= 1'b1;
                    words[1] <= beats;
                end
            end
        end
    end

    always_comb begin
        if (!began) assume (reset);
        if (began && (started || !done)) assume (pass == was_pass && plan == was_plan);
        if (began && !done) assume (!start);
        assume (pass.steps > 0 && pass.steps <= WEIGHT_DEPTH && pass.tile_beats == pass.steps * BANK_GROUPS);
        assume (pass.tile_uses > 0 && pass.tile_uses <= USES && pass.weight_feeds > 0 && pass.weight_feeds <= FEEDS);
        assume (pass.channel_tiles > 0 && pass.channel_tiles <= USES);
        assume (any_rounds > 0 && any_rounds <= USES);
        assume (plan.next_beats >= 0 && plan.next_beats <= WEIGHT_DEPTH * BANK_GROUPS && plan.next_beats % BANK_GROUPS == 0);
        if (resident) begin
            assume (pass.channel_tiles * pass.steps <= WEIGHT_DEPTH);
            assume (pass.load_beats == pass.channel_tiles * pass.tile_beats);
            if (start) assume (pass.tile_uses == any_rounds * pass.channel_tiles);
        end else assume (pass.load_beats == pass.tile_uses * pass.tile_beats);
        assume (pass.first_step >= 0 && pass.first_step < WEIGHT_DEPTH);
        if (start && !plan.first) assume (pass.steps == next_steps && pass.first_step == first && loaded);
    end

    always_comb if (began) begin
        assert ((idle || begins || runs) && idle == !running && done == (idle && remaining_loads == 0));
        assert (bank_group == (second ? 2'b10 : 2'b01) || !loaded);
        if (!loaded) assert (done);
        if (loaded) begin
            assert (first >= 0 && first < WEIGHT_DEPTH && next_steps >= 0 && next_steps <= WEIGHT_DEPTH);
            assert (stored >= 0 && stored <= WEIGHT_DEPTH && remaining_loads >= 0 && remaining_loads[0] == second);
            assert (stored + (remaining_loads + 1) / BANK_GROUPS == owed);
            assert (store_step == place(first, stored));
            assert (owed == (running ? (resident ? pass.channel_tiles : uses) * pass.steps : 0) + next_steps);
            if (!running && done) assert (stored == next_steps && !second);
        end
        if (running) begin
            assert (loaded && remaining_uses == uses && uses > 0 && uses <= pass.tile_uses);
            assert (remaining_feeds == pass.weight_feeds - fed || begins);
            assert (fed >= 0 && fed < pass.weight_feeds && next_steps == plan.next_beats / BANK_GROUPS);
            assert (!begins || (fed == 0 && fed_of_tile == 0));
            assert (fed_of_tile >= 0 && fed_of_tile < pass.steps);
            if (resident) assert (first == pass.first_step);
            if (resident) assert (tile == tile_of_round && tile_of_round >= 0 && tile_of_round < pass.channel_tiles);
            if (resident) assert (rounds > 0 && rounds <= USES && uses == rounds * pass.channel_tiles - tile_of_round);
            assert (base == place(first, tile_offset) && needed == tile_offset + pass.steps);
            if (!begins) begin
                assert (stored >= needed && step == place(first, tile_offset + fed_of_tile));
                assert (tile_steps.initial_remaining == pass.steps - 1 && tile_steps.initial_last == (pass.steps == 1));
                assert (tile_steps.remaining == pass.steps - 1 - fed_of_tile && tile_steps.last == (tile_steps.remaining == 0));
            end
        end else assert (!feeding);
        // The reasons for waiting.
        if (begins && stored < needed) assert (beats_ready || !beats_valid);
        if (running && !begins && !feeding) assert (!room);
        if (!running && remaining_loads != 0) assert (beats_ready || !beats_valid);
        // The words of a fed step, a cycle later.
        assert (read_valid == was_feeding);
        if (tracked) begin
            assert (loaded && ahead >= 0 && ahead <= stored && (ahead < stored) == tracked_whole && (tracked_whole || second));
            assert (even[place(first, ahead)] == words[0]);
            if (tracked_whole) assert (odd[place(first, ahead)] == words[1]);
        end
        if (fed_tracked) assert (read_words == words);
    end
endmodule
bind feed_weights feed_weights_proof proof (
    .*, .idle(state == IDLE), .begins(state == BEGIN), .runs(state == RUN), .even(banks[0].words.memory),
    .odd(banks[1].words.memory));

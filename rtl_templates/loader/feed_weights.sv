// Owns the weight buffer, a circular buffer of steps (the weights of one cycle of the array) with one bank per word of
// a step. It feeds the weights of one step per cycle, and repeats the steps of a tile. Meanwhile further tiles are
// stored after that tile, as long as there is room. So a tile whose load takes longer than one tile's feed, such as the
// first tile of the next pass, is loaded during the feeds of several tiles.
module feed_weights
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    output logic done,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    input weight_plan_t plan,
    // verilator lint_on UNUSEDSIGNAL
    input logic [WEIGHT_PORTS-1:0] beats_valid,
    output logic [WEIGHT_PORTS-1:0] beats_ready,
    input logic [WEIGHT_PORTS-1:0][WEIGHT_WORDS*WORD_BITS-1:0] beats,
    output logic weights_valid,
    input logic weights_ready,
    output logic [BEATS-1:0][WORD_BITS-1:0] weights
);
    localparam int ADDRESS_BITS = $clog2(WEIGHT_DEPTH);
    localparam int LATENCY = 2;  // from a feed to its weights in the FIFO

    typedef enum logic [1:0] {IDLE, BEGIN, RUN} state_t;
    state_t state;
    number_t use_left, tile, base, feeds_left;

    function automatic number_t next_step(number_t step);
        return step == WEIGHT_DEPTH - 1 ? 0 : step + 1;
    endfunction

    // --- store: where the next words go -------------------------------------------------------------------------
    // held: steps in the buffer, from the first step of the tile that is fed, or of the pass if all its tiles stay.
    // needed: steps that must be in the buffer before this tile can be fed.
    number_t held, needed, released;
    number_t store_step, loads_left;
    logic [TURNS-1:0] turn;
    logic storing;
    assign storing = loads_left != 0 && held != WEIGHT_DEPTH && (&beats_valid);
    assign beats_ready = {WEIGHT_PORTS{storing}};

    // --- feed ---------------------------------------------------------------------------------------------------
    number_t step;
    countdown_t tile_steps;
    logic room, feeding, read_valid;
    assign feeding = state == RUN && feeds_left != 0 && room;

    logic [BEATS-1:0][WORD_BITS-1:0] read_words;
    for (genvar bank = 0; bank < BEATS; bank++) begin : banks
        sdp_ram #(.WIDTH(WORD_BITS), .DEPTH(WEIGHT_DEPTH), .STYLE(WEIGHT_MEMORY)) words (
            .clk,
            .write(storing && turn[bank/BEAT_WORDS]),
            .write_address(ADDRESS_BITS'(store_step)),
            .write_data(beats[bank%BEAT_WORDS/WEIGHT_WORDS][bank%WEIGHT_WORDS*WORD_BITS+:WORD_BITS]),
            .read(feeding),
            .read_address(ADDRESS_BITS'(step)),
            .read_data(read_words[bank]));
    end

    fifo #(.WIDTH(BEATS * WORD_BITS), .DEPTH(LATENCY + 4), .SLACK(LATENCY)) steps (
        .clk, .reset, .in_valid(read_valid), .in_ready(room), .in_data(read_words), .out_valid(weights_valid),
        .out_ready(weights_ready), .out_data(weights));

    // --- tiles --------------------------------------------------------------------------------------------------
    logic ends, last_use, last_tile;
    assign last_use = use_left == 1;
    assign last_tile = tile + 1 == pass.channel_tiles;
    assign ends = state == RUN && feeds_left == number_t'(feeding);
    // Tiles that are used again stay until the pass ends.
    assign released = !ends || (pass.resident != 0 && !last_use) ? 0 : needed;
    assign done = state == IDLE && loads_left == 0;

    always_ff @(posedge clk) begin
        read_valid <= feeding && !reset;
        if (reset) begin
            state <= IDLE;
            loads_left <= 0;
        end else begin
            if (storing) begin
                loads_left <= loads_left - 1;
                turn <= TURNS'({turn, turn[TURNS-1]});
                if (turn[TURNS-1]) store_step <= next_step(store_step);
            end
            held <= held + number_t'(storing && turn[TURNS-1]) - released;
            case (state)
                IDLE: if (start) begin
                    state <= BEGIN;
                    use_left <= pass.tile_uses;
                    tile <= 0;
                    base <= pass.first_step;
                    needed <= pass.steps;
                    // The pass before has loaded the first tile, except at the start of a frame.
                    held <= plan.first ? 0 : pass.steps;
                    loads_left <= pass.load_beats - (plan.first ? 0 : pass.tile_beats) + plan.next_beats;
                    store_step <= plan.first ? pass.first_step : wrapped(pass.first_step + pass.steps, WEIGHT_DEPTH);
                    turn <= TURNS'(1);
                end
                BEGIN: begin
                    if (held >= needed) state <= RUN;
                    feeds_left <= pass.weight_feeds;
                    step <= base;
                    tile_steps <= begun(pass.steps);
                end
                default: begin
                    if (feeding) begin
                        feeds_left <= feeds_left - 1;
                        tile_steps <= counted(tile_steps);
                        step <= tile_steps.last ? base : next_step(step);
                    end
                    if (ends) begin
                        state <= last_use ? IDLE : BEGIN;
                        use_left <= use_left - 1;
                        tile <= last_tile ? 0 : tile + 1;
                        base <= pass.resident != 0 && last_tile
                            ? pass.first_step : wrapped(base + pass.steps, WEIGHT_DEPTH);
                        if (pass.resident != 0) needed <= last_tile ? pass.steps : needed + pass.steps;
                    end
                end
            endcase
        end
    end
endmodule

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
    number_t remaining_uses, tile, base, remaining_feeds;

    function automatic number_t next_step(number_t step);
        return step == WEIGHT_DEPTH - 1 ? 0 : step + 1;
    endfunction

    // --- store: where the next words go -------------------------------------------------------------------------
    // stored: steps in the buffer, from the first step of the tile that is fed, or of the pass if all its tiles stay.
    // needed: steps that must be in the buffer before this tile can be fed.
    number_t stored, needed, released;
    number_t store_step, remaining_loads;
    logic [BANK_GROUPS-1:0] bank_group;
    logic storing;
    assign storing = remaining_loads != 0 && stored != WEIGHT_DEPTH && (&beats_valid);
    assign beats_ready = {WEIGHT_PORTS{storing}};

    // --- feed ---------------------------------------------------------------------------------------------------
    number_t step;
    countdown_t tile_steps;
    logic room, feeding, read_valid;
    assign feeding = state == RUN && remaining_feeds != 0 && room;

    logic [BEATS-1:0][WORD_BITS-1:0] read_words;
    for (genvar bank = 0; bank < BEATS; bank++) begin : banks
        sdp_ram #(.WIDTH(WORD_BITS), .DEPTH(WEIGHT_DEPTH), .STYLE(WEIGHT_MEMORY)) words (
            .clk,
            .write(storing && bank_group[bank/BEAT_WORDS]),
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
    logic tile_ends, last_use, last_tile;
    assign last_use = remaining_uses == 1;
    assign last_tile = tile + 1 == pass.channel_tiles;
    assign tile_ends = state == RUN && remaining_feeds == number_t'(feeding);
    // Tiles that are used again stay until the pass ends.
    assign released = !tile_ends || (pass.resident != 0 && !last_use) ? 0 : needed;
    assign done = state == IDLE && remaining_loads == 0;

    always_ff @(posedge clk) begin
        read_valid <= feeding && !reset;
        if (reset) begin
            state <= IDLE;
            remaining_loads <= 0;
        end else begin
            if (storing) begin
                remaining_loads <= remaining_loads - 1;
                bank_group <= BANK_GROUPS'({bank_group, bank_group[BANK_GROUPS-1]});
                if (bank_group[BANK_GROUPS-1]) store_step <= next_step(store_step);
            end
            stored <= stored + number_t'(storing && bank_group[BANK_GROUPS-1]) - released;
            case (state)
                IDLE: if (start) begin
                    state <= BEGIN;
                    remaining_uses <= pass.tile_uses;
                    tile <= 0;
                    base <= pass.first_step;
                    needed <= pass.steps;
                    // The pass before has loaded the first tile, except at the start of a frame.
                    stored <= plan.first ? 0 : pass.steps;
                    remaining_loads <= pass.load_beats - (plan.first ? 0 : pass.tile_beats) + plan.next_beats;
                    store_step <= plan.first ? pass.first_step : wrap_once(pass.first_step + pass.steps, WEIGHT_DEPTH);
                    bank_group <= BANK_GROUPS'(1);
                end
                BEGIN: begin
                    if (stored >= needed) state <= RUN;
                    remaining_feeds <= pass.weight_feeds;
                    step <= base;
                    tile_steps <= start_countdown(pass.steps);
                end
                default: begin
                    if (feeding) begin
                        remaining_feeds <= remaining_feeds - 1;
                        tile_steps <= next_countdown(tile_steps);
                        step <= tile_steps.last ? base : next_step(step);
                    end
                    if (tile_ends) begin
                        state <= last_use ? IDLE : BEGIN;
                        remaining_uses <= remaining_uses - 1;
                        tile <= last_tile ? 0 : tile + 1;
                        base <= pass.resident != 0 && last_tile
                            ? pass.first_step : wrap_once(base + pass.steps, WEIGHT_DEPTH);
                        if (pass.resident != 0) needed <= last_tile ? pass.steps : needed + pass.steps;
                    end
                end
            endcase
        end
    end
endmodule

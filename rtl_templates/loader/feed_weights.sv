// Owns the weight buffer, a circular buffer of steps with a bank for each word of a step. Feeds the weights of a step a
// cycle, over and over those of a tile, while the next tile of weights arrives and is stored behind it.
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
    logic first;  // the phase that only loads, at the start of a frame
    number_t use_left, loaded, tile, base, feeds_left, loads_left;

    function automatic number_t next_step(number_t step);
        return step == WEIGHT_DEPTH - 1 ? 0 : step + 1;
    endfunction

    // --- store: where the next words go -------------------------------------------------------------------------
    number_t store_step;
    logic [TURNS-1:0] turn;
    logic storing;
    assign storing = state == RUN && loads_left != 0 && (&beats_valid);
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

    // --- phases -------------------------------------------------------------------------------------------------
    logic ends, last_use;
    assign last_use = use_left == 1;
    assign ends = feeds_left == number_t'(feeding) && loads_left == number_t'(storing);
    assign done = state == IDLE;

    always_ff @(posedge clk) begin
        read_valid <= feeding && !reset;
        if (reset) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                state <= BEGIN;
                first <= plan.first;
                use_left <= pass.tile_uses;
                loaded <= 0;
                tile <= 0;
                base <= pass.first_step;
                store_step <= plan.first ? pass.first_step : wrapped(pass.first_step + pass.steps, WEIGHT_DEPTH);
                turn <= TURNS'(1);
            end
            BEGIN: begin
                state <= RUN;
                feeds_left <= first ? 0 : pass.weight_feeds;
                loads_left <= first || loaded < plan.loads ? pass.tile_beats : last_use ? plan.next_beats : 0;
                step <= base;
                tile_steps <= begun(pass.steps);
            end
            default: begin
                if (storing) begin
                    loads_left <= loads_left - 1;
                    turn <= TURNS'({turn, turn[TURNS-1]});
                    if (turn[TURNS-1]) store_step <= next_step(store_step);
                end
                if (feeding) begin
                    feeds_left <= feeds_left - 1;
                    tile_steps <= counted(tile_steps);
                    step <= tile_steps.last ? base : next_step(step);
                end
                if (ends) begin
                    first <= 1'b0;
                    state <= !first && last_use ? IDLE : BEGIN;
                    if (!first) begin
                        use_left <= use_left - 1;
                        loaded <= loaded + 1;
                        tile <= tile + 1 == pass.channel_tiles ? 0 : tile + 1;
                        base <= pass.resident != 0 && tile + 1 == pass.channel_tiles
                            ? pass.first_step : wrapped(base + pass.steps, WEIGHT_DEPTH);
                    end
                end
            end
        endcase
    end
endmodule

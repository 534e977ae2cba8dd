// The engine: Loader (read_rows, load, read_weights, feed_weights) → PE array → Saver (pool, requantise, arrange,
// chunk_rows). The modules are connected by valid and ready, and each has its own state machine. ``pass_start`` starts
// a pass in all modules. The pass is done when all its writes are acknowledged.
module engine
    import systolic_geometry::*;
#(
    parameter bit INSTANTIATED = 1
) (
    input logic clk,
    input logic dsp_clk,
    input logic reset,
    input logic pass_start,
    output logic pass_done,
    input pass_t pass,
    input weight_plan_t plan,
    input logic [SAVE_PORTS-1:0][63:0] maps_read,
    input logic [SAVE_PORTS-1:0][63:0] maps_write,
    input logic [WEIGHT_PORTS-1:0][63:0] weights_base,
    input logic [63:0] requantisers,
    // maps
    output logic [SAVE_PORTS-1:0] maps_ar_valid,
    input logic [SAVE_PORTS-1:0] maps_ar_ready,
    output logic [SAVE_PORTS-1:0][63:0] maps_ar_address,
    output logic [SAVE_PORTS-1:0][7:0] maps_ar_length,
    input logic [SAVE_PORTS-1:0] maps_r_valid,
    output logic [SAVE_PORTS-1:0] maps_r_ready,
    input logic [SAVE_PORTS-1:0] maps_r_last,
    input word_t [SAVE_PORTS-1:0] maps_r_data,
    output logic [SAVE_PORTS-1:0] maps_aw_valid,
    input logic [SAVE_PORTS-1:0] maps_aw_ready,
    output logic [SAVE_PORTS-1:0][63:0] maps_aw_address,
    output logic [SAVE_PORTS-1:0][7:0] maps_aw_length,
    output logic [SAVE_PORTS-1:0] maps_w_valid,
    input logic [SAVE_PORTS-1:0] maps_w_ready,
    output logic [SAVE_PORTS-1:0] maps_w_last,
    output word_t [SAVE_PORTS-1:0] maps_w_data,
    output logic [SAVE_PORTS-1:0][WORD_BITS/8-1:0] maps_w_strobe,
    input logic [SAVE_PORTS-1:0] maps_b_valid,
    output logic [SAVE_PORTS-1:0] maps_b_ready,
    // weights
    output logic [WEIGHT_PORTS-1:0] weights_ar_valid,
    input logic [WEIGHT_PORTS-1:0] weights_ar_ready,
    output logic [WEIGHT_PORTS-1:0][63:0] weights_ar_address,
    output logic [WEIGHT_PORTS-1:0][7:0] weights_ar_length,
    input logic [WEIGHT_PORTS-1:0] weights_r_valid,
    output logic [WEIGHT_PORTS-1:0] weights_r_ready,
    input logic [WEIGHT_PORTS-1:0] weights_r_last,
    input logic [WEIGHT_PORTS-1:0][WEIGHT_WORDS*WORD_BITS-1:0] weights_r_data,
    // requantisers
    output logic requantisers_ar_valid,
    input logic requantisers_ar_ready,
    output logic [63:0] requantisers_ar_address,
    output logic [7:0] requantisers_ar_length,
    input logic requantisers_r_valid,
    output logic requantisers_r_ready,
    input logic requantisers_r_last,
    input logic [REQUANTISER_BITS-1:0] requantisers_r_data
);
    localparam int BURST_WORDS = 64;
    localparam int WORD_BYTES = WORD_BITS / 8;

    // --- Loader of maps -------------------------------------------------------------------------------------------
    logic [MAP_PORTS-1:0] rows_valid, rows_ready;
    word_t [MAP_PORTS-1:0] rows;
    for (genvar port = 0; port < MAP_PORTS; port++) begin : map_readers
        logic command_valid, command_ready;
        logic [31:0] command_address, command_words;
        read_rows #(.PORT(port)) reader (
            .clk, .reset, .start(pass_start), .pass, .command_valid, .command_ready, .command_address,
            .command_words);
        axi_read #(.BYTES(WORD_BYTES), .LENGTH(BURST_WORDS), .OUTSTANDING(OUTSTANDING)) master (
            .clk, .reset, .base(maps_read[port]), .command_valid, .command_ready, .command_address, .command_words,
            .out_valid(rows_valid[port]), .out_ready(rows_ready[port]), .out_data(rows[port]),
            .ar_valid(maps_ar_valid[port]), .ar_ready(maps_ar_ready[port]), .ar_address(maps_ar_address[port]),
            .ar_length(maps_ar_length[port]), .r_valid(maps_r_valid[port]), .r_ready(maps_r_ready[port]),
            .r_last(maps_r_last[port]), .r_data(maps_r_data[port]));
    end
    number_t [ROWS-1:0] buffer_read_address, buffer_write_address;
    word_t [ROWS-1:0] buffer_read_words, buffer_write_words;
    logic [ROWS-1:0] buffer_write;
    logic [1:0] buffer_write_halves;
    // verilator lint_off UNUSEDSIGNAL
    addition_t addition;
    // verilator lint_on UNUSEDSIGNAL
    number_t [ROWS-1:0] residual_address;
    word_t [ROWS-1:0] residual_words;
    assign addition = addition_of(pass);
    map_buffers on_chip (
        .clk, .read_from(pass.in_buffer), .read_address(buffer_read_address), .read_words(buffer_read_words),
        .add_from(addition.from_chip ? addition.buffer : 0), .add_address(residual_address), .add_words(residual_words),
        .write_to(pass.out_buffer), .write(buffer_write), .write_halves(buffer_write_halves), .write_address(buffer_write_address),
        .write_words(buffer_write_words));
    logic load_done, activations_valid, activations_ready;
    word_t [ROWS-1:0][POSITIONS-1:0] activations;
    load loader (
        .clk, .reset, .start(pass_start), .done(load_done), .pass, .rows_valid, .rows_ready, .rows,
        .buffer_read_address, .buffer_read_words, .activations_valid, .activations_ready, .activations);

    // --- Loader of weights ------------------------------------------------------------------------------------------
    logic [WEIGHT_PORTS-1:0] beats_valid, beats_ready;
    logic [WEIGHT_PORTS-1:0][WEIGHT_WORDS*WORD_BITS-1:0] beats;
    for (genvar port = 0; port < WEIGHT_PORTS; port++) begin : weight_readers
        logic command_valid, command_ready;
        logic [31:0] command_address, command_words;
        read_weights reader (
            .clk, .reset, .start(pass_start), .pass, .plan, .command_valid, .command_ready, .command_address,
            .command_words);
        axi_read #(.BYTES(WORD_BYTES * WEIGHT_WORDS), .LENGTH(BURST_WORDS), .OUTSTANDING(OUTSTANDING)) master (
            .clk, .reset, .base(weights_base[port]), .command_valid, .command_ready, .command_address, .command_words,
            .out_valid(beats_valid[port]), .out_ready(beats_ready[port]), .out_data(beats[port]),
            .ar_valid(weights_ar_valid[port]), .ar_ready(weights_ar_ready[port]),
            .ar_address(weights_ar_address[port]), .ar_length(weights_ar_length[port]),
            .r_valid(weights_r_valid[port]), .r_ready(weights_r_ready[port]), .r_last(weights_r_last[port]),
            .r_data(weights_r_data[port]));
    end
    logic feed_done, weights_valid, weights_ready;
    logic [BEATS-1:0][WORD_BITS-1:0] weights;
    feed_weights feeder (
        .clk, .reset, .start(pass_start), .done(feed_done), .pass, .plan, .beats_valid, .beats_ready, .beats,
        .weights_valid, .weights_ready, .weights);

    // --- PE array ---------------------------------------------------------------------------------------------------
    logic sums_valid, sums_ready;
    sums_t [ROWS-1:0][POSITIONS-1:0] sums;
    pe_array #(.INSTANTIATED(INSTANTIATED)) array (
        .clk, .dsp_clk, .reset, .start(pass_start), .steps(pass.steps),
        .nibbles(VALUE_BITS == 4 && pass.pixel_input != 0), .activations_valid, .activations_ready, .activations,
        .weights_valid, .weights_ready, .weights, .sums_valid, .sums_ready, .sums);

    // --- Saver ------------------------------------------------------------------------------------------------------
    logic next_tile_valid, next_tile_ready, tile_valid, tile_ready, pool_done;
    logic group_valid, group_ready, requantise_done, result_valid, result_ready;
    pool_tile_t next_tile, tile;
    logic product_valid, product_ready, multiply_done;
    group_t group, product;
    factors_t factors;
    results_t result;
    plan_tiles tile_planner (
        .clk, .reset, .start(pass_start), .pass, .tile_valid(next_tile_valid), .tile_ready(next_tile_ready),
        .tile(next_tile));
    // This FIFO separates the planner's arithmetic from the pool's comparisons, for timing.
    fifo #(.WIDTH($bits(pool_tile_t)), .DEPTH(2)) tiles (
        .clk, .reset, .in_valid(next_tile_valid), .in_ready(next_tile_ready), .in_data(next_tile),
        .out_valid(tile_valid), .out_ready(tile_ready), .out_data(tile));
    pool pooler (
        .clk, .reset, .start(pass_start), .done(pool_done), .pass, .tile_valid, .tile_ready, .tile, .sums_valid,
        .sums_ready, .sums, .group_valid, .group_ready, .group, .factors);
    multiply multiplier (
        .clk, .reset, .pass, .factors, .done(multiply_done), .group_valid, .group_ready, .group, .product_valid,
        .product_ready, .product);

    logic constants_valid, constants_ready, constant_valid, constant_ready;
    logic [31:0] constants_address, constants_words;
    logic [REQUANTISER_BITS-1:0] constant;
    axi_read #(.BYTES(REQUANTISER_BITS / 8), .LENGTH(BURST_WORDS), .OUTSTANDING(OUTSTANDING)) constant_reader (
        .clk, .reset, .base(requantisers), .command_valid(constants_valid), .command_ready(constants_ready),
        .command_address(constants_address), .command_words(constants_words), .out_valid(constant_valid),
        .out_ready(constant_ready), .out_data(constant), .ar_valid(requantisers_ar_valid),
        .ar_ready(requantisers_ar_ready), .ar_address(requantisers_ar_address),
        .ar_length(requantisers_ar_length), .r_valid(requantisers_r_valid), .r_ready(requantisers_r_ready),
        .r_last(requantisers_r_last), .r_data(requantisers_r_data));
    requantise requantiser (
        .clk, .reset, .start(pass_start), .done(requantise_done), .pass, .command_valid(constants_valid),
        .command_ready(constants_ready), .command_address(constants_address), .command_words(constants_words),
        .constant_valid, .constant_ready, .constant, .group_valid(product_valid), .group_ready(product_ready),
        .group(product), .result_valid, .result_ready, .result);

    // A chunk is sent to arrange and, in the same cycle, to every port that writes it. A map in DDR is written by the
    // ports of maps, the output of a residual add by the last port. The reader of the residual map gets the chunk if
    // that map is in DDR.
    logic plan_done, planned_valid, planned_ready, chunk_valid, chunk_ready, chunk_room, arrange_done, has_residual_add, added_room, added_done;
    logic [SAVE_PORTS-1:0] writes, port_room, writes_done, words_valid, words_ready;
    word_t [SAVE_PORTS-1:0] words;
    logic [SAVE_PORTS-1:0][1:0] words_halves;
    logic added_valid, added_ready;
    word_t added;
    // verilator lint_off UNUSEDSIGNAL
    number_t added_row_offset;
    // verilator lint_on UNUSEDSIGNAL
    chunk_t planned, chunk;
    assign has_residual_add = ADDED_MAPS > 0 && (addition.from_ddr || addition.from_chip);
    for (genvar port = 0; port < SAVE_PORTS; port++) begin : written
        assign writes[port] = pass.out_buffer == 0 && has_residual_add == (port == MAP_PORTS);
    end
    assign planned_ready = chunk_room && (&(port_room | ~writes)) && (added_room || !addition.from_ddr);
    plan_chunks chunk_planner (
        .clk, .reset, .start(pass_start), .done(plan_done), .pass, .chunk_valid(planned_valid),
        .chunk_ready(planned_ready), .chunk(planned), .added_row_offset);
    fifo #(.WIDTH($bits(chunk_t)), .DEPTH(2)) chunks (
        .clk, .reset, .in_valid(planned_valid && planned_ready), .in_ready(chunk_room), .in_data(planned),
        .out_valid(chunk_valid), .out_ready(chunk_ready), .out_data(chunk));
    arrange arranger (
        .clk, .reset, .done(arrange_done), .pass, .chunk_valid, .chunk_ready, .chunk, .result_valid, .result_ready,
        .result, .words_valid, .words_ready, .words, .words_halves, .added_valid, .added_ready, .added,
        .buffer_read_address(residual_address), .buffer_read_words(residual_words), .buffer_write, .buffer_write_halves, .buffer_write_address, .buffer_write_words);
    for (genvar port = 0; port < SAVE_PORTS; port++) begin : map_writers
        // The ports of maps write the rows of a chunk in turn. The port of residual adds writes all rows.
        localparam int FIRST = port < MAP_PORTS ? port : 0;
        localparam int STEP = port < MAP_PORTS ? MAP_PORTS : 1;
        logic port_valid, port_ready, command_valid, command_ready, idle;
        logic [31:0] command_address, command_words;
        chunk_t port_chunk;
        fifo #(.WIDTH($bits(chunk_t)), .DEPTH(4)) port_chunks (
            .clk, .reset, .in_valid(planned_valid && planned_ready && writes[port]), .in_ready(port_room[port]), .in_data(planned),
            .out_valid(port_valid), .out_ready(port_ready), .out_data(port_chunk));
        chunk_rows #(.FIRST(FIRST), .STEP(STEP)) writer (
            .clk, .reset, .pass, .base(pass.out_base), .row_pitch(pass.out_row_pitch), .chunk_valid(port_valid),
            .chunk_ready(port_ready), .chunk(port_chunk), .command_valid, .command_ready, .command_address,
            .command_words);
        axi_write #(.BYTES(WORD_BYTES), .LENGTH(BURST_WORDS), .OUTSTANDING(OUTSTANDING)) master (
            .clk, .reset, .base(maps_write[port]), .command_valid, .command_ready, .command_address, .command_words,
            .in_valid(words_valid[port]), .in_ready(words_ready[port]), .in_data(words[port]), .in_halves(words_halves[port]), .idle,
            .aw_valid(maps_aw_valid[port]), .aw_ready(maps_aw_ready[port]), .aw_address(maps_aw_address[port]),
            .aw_length(maps_aw_length[port]), .w_valid(maps_w_valid[port]), .w_ready(maps_w_ready[port]),
            .w_last(maps_w_last[port]), .w_data(maps_w_data[port]), .w_strobe(maps_w_strobe[port]), .b_valid(maps_b_valid[port]),
            .b_ready(maps_b_ready[port]));
        // A writer that is ready for a chunk has finished the one before.
        assign writes_done[port] = !port_valid && port_ready && idle;
    end

    // The residual map is read from DDR in the order in which arrange outputs results.
    if (ADDED_MAPS == 0) begin : no_residual
        assign {added_room, added_done} = '1;
        assign {added_valid, added} = '0;
        logic unused;
        assign unused = &{1'b0, added_ready};
    end else begin : added_reader
        logic port_valid, port_ready, command_valid, command_ready;
        logic [31:0] command_address, command_words;
        chunk_t added_chunk, port_chunk;
        always_comb begin
            added_chunk = planned;
            added_chunk.row_offset = added_row_offset;
        end
        fifo #(.WIDTH($bits(chunk_t)), .DEPTH(4)) port_chunks (
            .clk, .reset, .in_valid(planned_valid && planned_ready && addition.from_ddr), .in_ready(added_room),
            .in_data(added_chunk), .out_valid(port_valid), .out_ready(port_ready), .out_data(port_chunk));
        chunk_rows reader (
            .clk, .reset, .pass, .base(addition.base), .row_pitch(addition.row_pitch), .chunk_valid(port_valid),
            .chunk_ready(port_ready), .chunk(port_chunk), .command_valid, .command_ready, .command_address,
            .command_words);
        axi_read #(.BYTES(WORD_BYTES), .LENGTH(BURST_WORDS), .OUTSTANDING(OUTSTANDING)) master (
            .clk, .reset, .base(maps_read[MAP_PORTS]), .command_valid, .command_ready, .command_address, .command_words,
            .out_valid(added_valid), .out_ready(added_ready), .out_data(added), .ar_valid(maps_ar_valid[MAP_PORTS]),
            .ar_ready(maps_ar_ready[MAP_PORTS]), .ar_address(maps_ar_address[MAP_PORTS]),
            .ar_length(maps_ar_length[MAP_PORTS]), .r_valid(maps_r_valid[MAP_PORTS]),
            .r_ready(maps_r_ready[MAP_PORTS]), .r_last(maps_r_last[MAP_PORTS]), .r_data(maps_r_data[MAP_PORTS]));
        assign added_done = !port_valid && port_ready;
    end

    assign pass_done = load_done && feed_done && pool_done && multiply_done && requantise_done && plan_done && arrange_done
        && (&writes_done) && added_done;
endmodule

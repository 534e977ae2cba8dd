// y = saturate(((sum + bias) · m + 2^(s − 1)) >> s), with m = ``negative`` where sum + bias < 0, else ``multiplier``.
// First reads the constants of all output channels of the pass, then turns SAVE_ROWS rows of a position into results a
// cycle. Nothing in the pipeline waits: a group is taken where the FIFO of results has room for all that are under way.
module requantise
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    output logic done,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    output logic command_valid,
    input logic command_ready,
    output logic [31:0] command_address,
    output logic [31:0] command_words,
    input logic constant_valid,
    output logic constant_ready,
    // verilator lint_off UNUSEDSIGNAL
    input logic [REQUANTISER_BITS-1:0] constant,  // bias, multiplier | negative << 16, shift, and 32 bits unused
    // verilator lint_on UNUSEDSIGNAL
    input logic group_valid,
    output logic group_ready,
    input group_t group,
    output logic result_valid,
    input logic result_ready,
    output results_t result
);
    localparam int CHANNEL_BITS = 72;  // of what is kept: bias 32, multiplier 16, negative 16, shift 6, and 2 unused
    localparam int ADDRESS_BITS = CHANNEL_TILES > 1 ? $clog2(CHANNEL_TILES) : 1;
    localparam int LATENCY = 7;

    typedef enum logic [1:0] {IDLE, ASK, READ, RUN} state_t;
    state_t state;
    number_t tile;
    countdown_t left;
    logic [COLUMNS-1:0] turn;
    assign command_valid = state == ASK;
    assign command_address = pass.requantiser_base;
    assign command_words = pass.channels;
    assign constant_ready = state == READ;
    assign done = state == IDLE;

    logic room, taken, stored;
    assign group_ready = state == RUN && room;
    assign taken = group_valid && group_ready;
    assign stored = constant_valid && constant_ready;

    always_ff @(posedge clk) begin
        if (reset) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                state <= ASK;
                tile <= 0;
                turn <= COLUMNS'(1);
                left <= begun(pass.channels);
            end
            ASK: if (command_ready) state <= READ;
            READ: if (stored) begin
                turn <= {turn[COLUMNS-2:0], turn[COLUMNS-1]};
                if (turn[COLUMNS-1]) tile <= tile + 1;
                left <= counted(left);
                if (left.last) state <= RUN;
            end
            default: if (taken && group.last) state <= IDLE;
        endcase
    end

    logic [LATENCY-1:0] valid;  // of each stage
    always_ff @(posedge clk) valid <= reset ? '0 : {valid[LATENCY-2:0], taken};

    logic signed [RESULT_BITS-1:0] least, greatest;
    assign least = pass.limits[15:0];
    assign greatest = pass.limits[31:16];

    results_t saturated;
    for (genvar n = 0; n < COLUMNS; n++) begin : columns
        // verilator lint_off UNUSEDSIGNAL
        logic [CHANNEL_BITS-1:0] kept;
        // verilator lint_on UNUSEDSIGNAL
        sdp_ram #(.WIDTH(CHANNEL_BITS), .DEPTH(CHANNEL_TILES), .STYLE(REQUANTISER_MEMORY)) constants (
            .clk, .write(stored && turn[n]), .write_address(ADDRESS_BITS'(tile)), .write_data(constant[71:0]),
            .read(taken), .read_address(ADDRESS_BITS'(group.channel)), .read_data(kept));
        logic [3:0][5:0] shift;  // of stages 2 to 5
        always_ff @(posedge clk) shift <= {shift[2:0], kept[69:64]};

        for (genvar r = 0; r < SAVE_ROWS; r++) begin : rows
            logic signed [SUM_BITS-1:0] sum, biased;
            logic signed [16:0] factor;
            logic signed [48:0] product, registered;
            logic signed [63:0] rounded, shifted;
            logic signed [SUM_BITS-1:0] with_bias;
            assign with_bias = sum + signed'(kept[31:0]);
            always_ff @(posedge clk) begin
                sum <= group.row[r][n];
                biased <= with_bias;
                factor <= {1'b0, with_bias < 0 ? kept[63:48] : kept[47:32]};
                product <= biased * factor;
                registered <= product;
                rounded <= 64'(registered) + (64'sd1 <<< (shift[2] - 6'd1));
                shifted <= rounded >>> shift[3];
                saturated[r][n] <= shifted < 64'(least) ? least : shifted > 64'(greatest) ? greatest
                    : shifted[RESULT_BITS-1:0];
            end
        end
    end

    fifo #(.WIDTH(SAVE_ROWS * COLUMNS * RESULT_BITS), .DEPTH(LATENCY + 4), .SLACK(LATENCY)) results (
        .clk, .reset, .in_valid(valid[LATENCY-1]), .in_ready(room), .in_data(saturated), .out_valid(result_valid),
        .out_ready(result_ready), .out_data(result));
endmodule

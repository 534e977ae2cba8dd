// A row of PEs, output-stationary: it has COLUMNS sums for each position, and every step adds LANES products to each.
// The row never stalls. Operands are skewed: the lane at place l of its chain arrives l cycles after the lane at place
// 0. ``control`` arrives together with the step's partial sums, LATENCY cycles after lane 0.
//
// Weights of PACK_COLUMNS neighbouring columns and values of POSITIONS neighbouring positions share a DSP:
//   8 bits   (w1 · 2^18 + w0) · a
//   4 bits   (w1 · 2^22 + w0) · (a1 · 2^11 + a0)
//   16 bits  w · a
// The sum of PACK_CHAIN such products fits its field, so that the fields separate exactly. The lowest field is the
// lowest bits. If a field is negative, it has borrowed 1 from the field above, which is added back.
//
// If DSP_CLOCK is 2, a chain computes PACK_COLUMNS columns in the first half of the fabric's cycle and the next
// PACK_COLUMNS columns in the second half. The logic after a chain exists once per column, at the fabric's clock.
module pe_row
    import systolic_geometry::*;
#(
    parameter bit INSTANTIATED = 1,
    parameter int ROW = 0
) (
    input logic clk,
    input logic dsp_clk,
    input logic [2:0] control,  // valid, first, last step of a position
    // verilator lint_off UNUSEDSIGNAL
    input logic nibbles,
    // verilator lint_on UNUSEDSIGNAL
    input logic [LANES*COLUMNS/DSP_CLOCK-1:0][VALUE_BITS-1:0] weights,  // [lane][column of a half]
    input logic [POSITIONS-1:0][LANES-1:0][VALUE_BITS-1:0] values,
    output logic sums_valid,
    output sums_t [POSITIONS-1:0] sums
);
    localparam int CHAINS = LANES / PACK_CHAIN;
    localparam int FIELDS = PACK_COLUMNS * POSITIONS;
    localparam int FIELD_BITS = FIELDS > 1 ? PACK_SHIFT : SUM_BITS;
    localparam int PACKED_BITS = FIELDS * FIELD_BITS;

    for (genvar n = 0; n < COLUMNS; n += PACK_COLUMNS * DSP_CLOCK) begin : column_group
        logic signed [DSP_CLOCK-1:0][FIELDS-1:0][CHAINS-1:0][FIELD_BITS-1:0] parts;
        for (genvar c = 0; c < CHAINS; c++) begin : chain
            logic signed [PACK_CHAIN-1:0][26:0] high, low;
            logic signed [PACK_CHAIN-1:0][17:0] value;
            // verilator lint_off UNUSEDSIGNAL
            logic signed [47:0] sum;
            // verilator lint_on UNUSEDSIGNAL
            for (genvar l = 0; l < PACK_CHAIN; l++) begin : lane
                localparam int AT = (lane_of(c, l) * COLUMNS + n) / DSP_CLOCK;
                assign low[l] = 27'(signed'(weights[AT]));
                if (PACK_COLUMNS == 1) begin : one_column
                    assign high[l] = '0;
                end else begin : two_columns
                    assign high[l] = 27'(signed'(weights[AT+1])) <<< (POSITIONS * PACK_SHIFT);
                end
                if (POSITIONS == 1) begin : one_position
                    assign value[l] = 18'(signed'(values[0][lane_of(c, l)]));
                end else begin : two_positions
                    assign value[l] = (18'(signed'(values[1][lane_of(c, l)])) <<< PACK_SHIFT)
                        + 18'(signed'(values[0][lane_of(c, l)]));
                end
            end
            mac_chain #(.LENGTH(PACK_CHAIN), .INSTANTIATED(INSTANTIATED)) products (
                .clk(dsp_clk), .high, .low, .value, .sum);
            logic [DSP_CLOCK-1:0][PACKED_BITS-1:0] chain_sums;
            capture_sums #(.WIDTH(PACKED_BITS), .ODD(ROW % 2 == 1)) capture (
                .clk, .dsp_clk, .sum(sum[PACKED_BITS-1:0]), .sums(chain_sums));
            for (genvar h = 0; h < DSP_CLOCK; h++) begin : half
                for (genvar f = 0; f < FIELDS; f++) begin : field
                    localparam int AT = f * FIELD_BITS;
                    logic borrowed;  // the bits below are negative as a whole if their uppermost bit is set
                    if (f == 0) begin : lowest
                        assign borrowed = 1'b0;
                    end else begin : above
                        assign borrowed = chain_sums[h][AT-1];
                    end
                    always_ff @(posedge clk) parts[h][f][c] <= chain_sums[h][AT+:FIELD_BITS] + FIELD_BITS'(borrowed);
                end
            end
        end

        for (genvar h = 0; h < DSP_CLOCK; h++) begin : half
            for (genvar f = 0; f < FIELDS; f++) begin : accumulated
                localparam int P = f % POSITIONS;
                localparam int N = n + h * PACK_COLUMNS + f / POSITIONS;
                logic [SUM_BITS-1:0] total;
                always_comb begin
                    total = control[1] ? '0 : sums[P][N];
                    for (int c = 0; c < CHAINS; c++) begin
                        automatic logic [SUM_BITS-1:0] part = SUM_BITS'(signed'(parts[h][f][c]));
                        total += VALUE_BITS == 4 && nibbles && c % 2 == 1 ? part << 4 : part;
                    end
                end
                always_ff @(posedge clk) if (control[2]) sums[P][N] <= total;
            end
        end
    end

    always_ff @(posedge clk) sums_valid <= control[2] && control[0];
endmodule

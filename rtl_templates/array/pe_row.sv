// A row of PEs, output-stationary: COLUMNS sums, to which every cycle of a step adds LANES products each. Nothing here
// stalls or waits. Operands come skewed: lane l of a step l mod PACK_CHAIN cycles after lane 0. ``control`` comes when
// the step's products are there: LATENCY cycles after lane 0.
//
// Two weights of neighbouring columns share a DSP, (w1 · 2^18 + w0) · a. The sum of PACK_CHAIN such products fits its
// field, so that the fields are told apart exactly: the lower one is the lower bits, and the upper one takes back what
// the lower one's sign has borrowed.
module pe_row
    import systolic_geometry::*;
#(
    parameter bit INSTANTIATED = 1
) (
    input logic clk,
    input logic [2:0] control,  // valid, first, last step of a position
    input logic [LANES*COLUMNS-1:0][VALUE_BITS-1:0] weights,  // [lane][column]
    input logic [LANES-1:0][VALUE_BITS-1:0] values,
    output logic sums_valid,
    output sums_t sums
);
    localparam int CHAINS = LANES / PACK_CHAIN;

    for (genvar n = 0; n < COLUMNS; n += PACK_COLUMNS) begin : pair
        logic signed [CHAINS-1:0][PACK_SHIFT-1:0] low_parts, high_parts;
        for (genvar c = 0; c < CHAINS; c++) begin : chain
            logic signed [PACK_CHAIN-1:0][26:0] high, low;
            logic signed [PACK_CHAIN-1:0][17:0] value;
            // verilator lint_off UNUSEDSIGNAL
            logic signed [47:0] sum;
            // verilator lint_on UNUSEDSIGNAL
            for (genvar l = 0; l < PACK_CHAIN; l++) begin : lane
                localparam int AT = (c * PACK_CHAIN + l) * COLUMNS + n;
                assign high[l] = 27'(signed'(weights[AT+1])) <<< PACK_SHIFT;
                assign low[l] = 27'(signed'(weights[AT]));
                assign value[l] = 18'(signed'(values[c*PACK_CHAIN+l]));
            end
            mac_chain #(.LENGTH(PACK_CHAIN), .INSTANTIATED(INSTANTIATED)) products (.clk, .high, .low, .value, .sum);
            always_ff @(posedge clk) begin
                low_parts[c] <= sum[PACK_SHIFT-1:0];
                high_parts[c] <= sum[2*PACK_SHIFT-1:PACK_SHIFT] + PACK_SHIFT'(sum[PACK_SHIFT-1]);
            end
        end

        logic [SUM_BITS-1:0] low_total, high_total;
        always_comb begin
            low_total = control[1] ? '0 : sums[n];
            high_total = control[1] ? '0 : sums[n+1];
            for (int c = 0; c < CHAINS; c++) begin
                low_total += SUM_BITS'(signed'(low_parts[c]));
                high_total += SUM_BITS'(signed'(high_parts[c]));
            end
        end
        always_ff @(posedge clk) begin
            if (control[2]) begin
                sums[n] <= low_total;
                sums[n+1] <= high_total;
            end
        end
    end

    always_ff @(posedge clk) sums_valid <= control[2] && control[0];
endmodule

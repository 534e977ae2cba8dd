// One requantiser: it adds the bias to a sum, multiplies by the channel's multiplier for the sum's sign, and shifts and
// saturates the product. ``constants`` arrive one cycle after ``sum``. Signals that the requantisers of a column share
// arrive when they are needed: ``offset`` with the product, then ``coarse``, and one cycle later ``fine`` and
// ``rounds``. ``to_parity`` and ``odd`` select the rounding of ties and are constant in a pass.
module requantise_sum
    import systolic_geometry::*;
(
    input logic clk,
    input logic signed [SUM_BITS-1:0] sum,
    // verilator lint_off UNUSEDSIGNAL
    input channel_t constants,
    input logic signed [47:0] offset,
    // verilator lint_on UNUSEDSIGNAL
    input logic [1:0] coarse,
    input logic [3:0] fine,
    input logic rounds,
    input logic to_parity,
    input logic odd,
    input logic signed [RESULT_BITS-1:0] least,
    input logic signed [RESULT_BITS-1:0] greatest,
    output logic signed [RESULT_BITS-1:0] result
);
    logic late;
    assign late = LATE_OFFSETS > 0 && constants.late;
    logic signed [SUM_BITS-1:0] registered;
    logic signed [BIASED_BITS-1:0] with_bias, biased;
    logic signed [16:0] factor;
    assign with_bias = BIASED_BITS'(registered) + (late ? '0 : signed'(constants.bias));
    always_ff @(posedge clk) begin
        registered <= sum;
        biased <= with_bias;
        factor <= {late && constants.late_sign, !late && with_bias < 0 ? constants.negative_multiplier : constants.multiplier};
    end

    // The schedule chooses DSPs or LUTs. Both take two cycles.
    logic signed [48:0] product, product_with_offset;
    if (REQUANTISE_DSPS != 0) begin : in_dsps
        (* use_dsp = "yes" *) logic signed [48:0] first;
        always_ff @(posedge clk) begin
            first <= biased * factor;
            product <= first;
        end
    end else begin : in_luts
        lut_product #(.NUMBER_BITS(BIASED_BITS), .FACTOR_BITS(17)) multiplier (.clk, .number(biased), .factor, .product);
    end

    if (LATE_OFFSETS == 0) begin : no_offset
        assign product_with_offset = product;
    end else begin : with_offset
        always_ff @(posedge clk) product_with_offset <= product + 49'(offset);
    end
    shift_and_saturate to_result (.clk, .value(product_with_offset), .coarse, .fine, .rounds, .to_parity, .odd, .least, .greatest, .result);
endmodule

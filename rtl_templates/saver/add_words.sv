// The residual add for a word of values: saturate((result · own + other · factor + offset) >> shift), where own and
// factor are the multipliers by.own and by.other. It takes one word per cycle, never stalls, and has a latency of
// ADD_STAGES cycles. With ``to_parity``, the offset does not include the half of rounding, and ties round to even or to
// odd integers. The multiplications are sums of shifted factors in LUTs, because the array needs the DSPs.
module add_words
    import systolic_geometry::*;
(
    input logic clk,
    // verilator lint_off UNUSEDSIGNAL
    input addition_t by,
    // verilator lint_on UNUSEDSIGNAL
    input word_t result,
    input word_t other,
    output word_t sum
);
    localparam int PART = VALUE_BITS < 8 ? VALUE_BITS : 8;  // bits of a value per partial product
    localparam int PARTS = VALUE_BITS / PART;
    localparam int PART_BITS = 32 + PART + 1;
    localparam int NEAR_HALF = 12;  // cnn/quantized.py
    localparam int ALL_BITS = 50;  // 2^15 · 2^31 twice, and an offset of 48 bits

    // factor · bits. If these are the top bits of a value (ends), the uppermost one has negative weight.
    function automatic logic signed [PART_BITS-1:0] multiple(number_t factor, logic [PART-1:0] bits, logic ends);
        automatic logic signed [PART_BITS-1:0] wide = PART_BITS'(factor);
        multiple = '0;
        for (int i = 0; i < PART; i += 2) begin
            automatic logic signed [PART_BITS-1:0] upper = bits[i+1] ? wide <<< (i + 1) : '0;
            multiple = multiple + ((bits[i] ? wide <<< i : '0) + (ends && i == PART - 2 ? -upper : upper));
        end
    endfunction

    logic signed [ALL_BITS-1:0] least, greatest;
    assign least = ALL_BITS'(by.least);
    assign greatest = ALL_BITS'(by.greatest);

    for (genvar l = 0; l < LANES; l++) begin : lanes
        logic signed [PARTS-1:0][PART_BITS-1:0] own, factored, both;
        logic signed [ALL_BITS-1:0] summed, rounded, shifted, exact;
        logic more, rises, below, above;  // more: a bit below the half is set; rises: the result is rounded up
        always_comb begin
            summed = ALL_BITS'(by.offset);
            for (int part = 0; part < PARTS; part++)
                summed = summed + (ALL_BITS'(signed'(both[part])) <<< (PART * part));
            exact = rounded & ~(by.to_parity ? ALL_BITS'((1 << NEAR_HALF) - 1) : '0);
            more = (exact & ((ALL_BITS'(1) << (by.shift - 6'd1)) - 1)) != '0;
            below = shifted < least;
            above = shifted > greatest || (rises && shifted == greatest);
        end
        always_ff @(posedge clk) begin
            for (int part = 0; part < PARTS; part++) begin
                own[part] <= multiple(by.own, result[VALUE_BITS*l+PART*part+:PART], part == PARTS - 1);
                factored[part] <= multiple(by.other, other[VALUE_BITS*l+PART*part+:PART], part == PARTS - 1);
                both[part] <= own[part] + factored[part];
            end
            rounded <= summed;
            shifted <= exact >>> by.shift;
            rises <= by.to_parity && exact[by.shift - 6'd1] && (more || exact[by.shift] != by.odd);
            sum[VALUE_BITS*l+:VALUE_BITS] <= VALUE_BITS'(
                below ? least : above ? greatest : shifted + ALL_BITS'(rises));
        end
    end
endmodule

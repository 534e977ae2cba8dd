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
        logic signed [PARTS-1:0][PART_BITS-1:0] own_product, other_product, product_sum;
        logic signed [ALL_BITS-1:0] total, rounded, shifted, masked;
        logic sticky, rounds_up, below, above;  // sticky: a bit below the half is set; rounds_up: the result is rounded up
        always_comb begin
            total = ALL_BITS'(by.offset);
            for (int part = 0; part < PARTS; part++)
                total = total + (ALL_BITS'(signed'(product_sum[part])) <<< (PART * part));
            masked = rounded & ~(by.to_parity ? ALL_BITS'((1 << NEAR_HALF) - 1) : '0);
            sticky = (masked & ((ALL_BITS'(1) << (by.shift - 6'd1)) - 1)) != '0;
            below = shifted < least;
            above = shifted > greatest || (rounds_up && shifted == greatest);
        end
        always_ff @(posedge clk) begin
            for (int part = 0; part < PARTS; part++) begin
                own_product[part] <= multiple(by.own, result[VALUE_BITS*l+PART*part+:PART], part == PARTS - 1);
                other_product[part] <= multiple(by.other, other[VALUE_BITS*l+PART*part+:PART], part == PARTS - 1);
                product_sum[part] <= own_product[part] + other_product[part];
            end
            rounded <= total;
            shifted <= masked >>> by.shift;
            rounds_up <= by.to_parity && masked[by.shift - 6'd1] && (sticky || masked[by.shift] != by.odd);
            sum[VALUE_BITS*l+:VALUE_BITS] <= VALUE_BITS'(
                below ? least : above ? greatest : shifted + ALL_BITS'(rounds_up));
        end
    end
endmodule

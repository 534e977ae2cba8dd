// result = saturate((value + 2^places) >> (places + 1)), limited to ``least`` … ``greatest``, in four cycles.
// ``coarse`` is the upper bits of ``places``, in the cycle of ``value``. ``fine`` is its lower four bits, in the next
// cycle. Without ``rounds``, also in the next cycle, nothing is added: value >> (places + 1).
//
// With ``to_parity``, a tie is rounded to the even integer, or to the odd one if ``odd`` is set; the NEAR_HALF lowest
// bits of a value are then ignored. Both signals are constant in a pass. Engines without such layers (LATE_OFFSETS
// below 2) do not contain this logic.
//
// A result has RESULT_BITS, so that only these bits of the shifted value and one bit below them are computed. The value
// is shifted in steps of 16, 4 and 1, each a four-way multiplexer. The bits above that a step drops must all equal the
// sign; otherwise the result is beyond one of the limits.
module shift_and_saturate
    import systolic_geometry::*;
#(
    parameter int BITS = 49
) (
    input logic clk,
    input logic signed [BITS-1:0] value,
    input logic [1:0] coarse,
    input logic [3:0] fine,
    input logic rounds,
    // verilator lint_off UNUSEDSIGNAL
    input logic to_parity,
    input logic odd,
    // verilator lint_on UNUSEDSIGNAL
    input logic signed [RESULT_BITS-1:0] least,
    input logic signed [RESULT_BITS-1:0] greatest,
    output logic signed [RESULT_BITS-1:0] result
);
    localparam int DOUBLE_BITS = RESULT_BITS + 1;  // bits of twice the result, which is halved and rounded at the end
    localparam int NEAR_HALF = 12;  // cnn/quantized.py
    logic even;
    assign even = LATE_OFFSETS > 1 && to_parity;

    // Shift by 0, 16 or 32. The 3 and 12 bits more than in the end are for the next two steps.
    logic signed [DOUBLE_BITS+14:0] s1;
    logic s1_negative, s1_overflow;
    logic signed [63:0] wide;
    assign wide = 64'(value) & ~(even ? 64'((1 << NEAR_HALF) - 1) : 64'd0);
    always_ff @(posedge clk) begin
        s1 <= coarse[1] ? wide[32+:DOUBLE_BITS+15] : coarse[0] ? wide[16+:DOUBLE_BITS+15] : wide[0+:DOUBLE_BITS+15];
        s1_negative <= value[BITS-1];
        s1_overflow <= !coarse[1] && (wide >>> (DOUBLE_BITS + (coarse[0] ? 30 : 14))) != (value[BITS-1] ? -1 : 0);
    end

    // Shift by 0, 4, 8 or 12, then by 0 to 3.
    logic signed [DOUBLE_BITS+2:0] s2;
    logic signed [DOUBLE_BITS-1:0] s3, shifted;
    logic [1:0] s2_ones;
    logic s2_rounds, s2_negative, s2_overflow, s3_negative, s3_overflow;
    logic s1_sticky, s2_sticky, sticky, tie_rounds_down;  // sticky: a dropped bit below the half is set; tie_rounds_down: a tie is not rounded up
    logic [3:0] fours, ones;  // for each shift: the dropped upper bits all equal the sign
    always_comb begin
        shifted = DOUBLE_BITS'(s2 >>> s2_ones);
        for (int i = 0; i < 4; i++) begin
            fours[i] = (s1 >>> (DOUBLE_BITS + 2 + 4 * i)) == (s1_negative ? -1 : 0);
            ones[i] = (s2 >>> (DOUBLE_BITS - 1 + i)) == (s2_negative ? -1 : 0);
        end
        sticky = s2_sticky || (s2[0] && s2_ones > 0) || (s2[1] && s2_ones > 1) || (s2[2] && s2_ones > 2);
        tie_rounds_down = even && !sticky && shifted[1] == odd;
    end
    always_ff @(posedge clk) begin
        s2 <= (DOUBLE_BITS + 3)'(s1 >>> {fine[3:2], 2'd0});
        s2_ones <= fine[1:0];
        s2_rounds <= rounds;
        s1_sticky <= coarse[1] ? wide[31:NEAR_HALF] != '0 : coarse[0] && wide[15:NEAR_HALF] != '0;
        s2_sticky <= s1_sticky || (s1[3:0] != '0 && fine[3:2] > 0) || (s1[7:4] != '0 && fine[3:2] > 1)
            || (s1[11:8] != '0 && fine[3:2] > 2);
        s2_negative <= s1_negative;
        s2_overflow <= s1_overflow || !fours[fine[3:2]];
        s3 <= {shifted[DOUBLE_BITS-1:1], shifted[0] && s2_rounds && !tie_rounds_down};
        s3_negative <= s2_negative;
        s3_overflow <= s2_overflow || !ones[s2_ones];
    end

    // A value that reaches a limit before rounding is that limit after rounding in either direction.
    logic signed [RESULT_BITS-1:0] half, limited;
    logic below, above;
    assign half = s3[DOUBLE_BITS-1:1];
    assign below = s3_overflow ? s3_negative : half < least;
    assign above = s3_overflow ? !s3_negative : half >= greatest;
    assign limited = below ? least : above ? greatest : half;
    always_ff @(posedge clk) result <= limited + RESULT_BITS'(s3[0] && !below && !above);
endmodule

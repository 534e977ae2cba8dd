// result = saturate((value + 2^places) >> (places + 1)), between ``least`` and ``greatest``, in four cycles: ``coarse`` has
// the upper bits of ``places`` in the cycle of ``value``, ``fine`` the lower four in the next one. Without ``rounds``, of
// the next cycle too, nothing is added: value >> (places + 1).
//
// With ``to_parity``, which like ``odd`` holds still, a half is rounded to the even integer, or to the odd one; a value then
// counts without its NEAR_HALF lowest bits. Engines without such layers (LATE_OFFSETS below 2) have none of it.
//
// A result has RESULT_BITS, so that of all the bits of a value only so many and one below them are shifted, in steps of
// 16, of 4 and of 1, each a multiplexer of four. What they leave out above has to be the sign over and over, else the
// result is beyond one of the limits.
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
    localparam int TWICE = RESULT_BITS + 1;  // of twice the result: what is left to do is to halve it, rounded
    localparam int NEAR_HALF = 12;  // cnn/quantized.py
    logic even;
    assign even = LATE_OFFSETS > 1 && to_parity;

    // By 0, 16 or 32; 3 and 12 bits more than what is left in the end, of which the steps behind choose.
    logic signed [TWICE+14:0] s1;
    logic s1_negative, s1_beyond;
    logic signed [63:0] wide;
    assign wide = 64'(value) & ~(even ? 64'((1 << NEAR_HALF) - 1) : 64'd0);
    always_ff @(posedge clk) begin
        s1 <= coarse[1] ? wide[32+:TWICE+15] : coarse[0] ? wide[16+:TWICE+15] : wide[0+:TWICE+15];
        s1_negative <= value[BITS-1];
        s1_beyond <= !coarse[1] && (wide >>> (TWICE + (coarse[0] ? 30 : 14))) != (value[BITS-1] ? -1 : 0);
    end

    // By 0, 4, 8 or 12, then by 0 to 3.
    logic signed [TWICE+2:0] s2;
    logic signed [TWICE-1:0] s3, shifted;
    logic [1:0] s2_ones;
    logic s2_rounds, s2_negative, s2_beyond, s3_negative, s3_beyond;
    logic s1_more, s2_more, more, stays;  // whether a bit below the half was left out, and whether it is not rounded up
    logic [3:0] fours, ones;  // whether a shift by so many leaves out nothing but the sign
    always_comb begin
        shifted = TWICE'(s2 >>> s2_ones);
        for (int i = 0; i < 4; i++) begin
            fours[i] = (s1 >>> (TWICE + 2 + 4 * i)) == (s1_negative ? -1 : 0);
            ones[i] = (s2 >>> (TWICE - 1 + i)) == (s2_negative ? -1 : 0);
        end
        more = s2_more || (s2[0] && s2_ones > 0) || (s2[1] && s2_ones > 1) || (s2[2] && s2_ones > 2);
        stays = even && !more && shifted[1] == odd;
    end
    always_ff @(posedge clk) begin
        s2 <= (TWICE + 3)'(s1 >>> {fine[3:2], 2'd0});
        s2_ones <= fine[1:0];
        s2_rounds <= rounds;
        s1_more <= coarse[1] ? wide[31:NEAR_HALF] != '0 : coarse[0] && wide[15:NEAR_HALF] != '0;
        s2_more <= s1_more || (s1[3:0] != '0 && fine[3:2] > 0) || (s1[7:4] != '0 && fine[3:2] > 1)
            || (s1[11:8] != '0 && fine[3:2] > 2);
        s2_negative <= s1_negative;
        s2_beyond <= s1_beyond || !fours[fine[3:2]];
        s3 <= {shifted[TWICE-1:1], shifted[0] && s2_rounds && !stays};
        s3_negative <= s2_negative;
        s3_beyond <= s2_beyond || !ones[s2_ones];
    end

    // What has come to a limit before it is rounded is the limit behind that too, whichever way it is rounded.
    logic signed [RESULT_BITS-1:0] half, held;
    logic below, above;
    assign half = s3[TWICE-1:1];
    assign below = s3_beyond ? s3_negative : half < least;
    assign above = s3_beyond ? !s3_negative : half >= greatest;
    assign held = below ? least : above ? greatest : half;
    always_ff @(posedge clk) result <= held + RESULT_BITS'(s3[0] && !below && !above);
endmodule

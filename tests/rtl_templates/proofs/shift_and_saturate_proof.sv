// Bound into shift_and_saturate. The result is the value of four cycles before, shifted right by 1 to 48 places and
// saturated to both limits. It is rounded half up or, without ``rounds``, down. With ``to_parity`` the lowest 12 bits
// of the value count as zeros. A value in the middle between two integers then becomes the even one or, with ``odd``,
// the odd one.
module shift_and_saturate_proof
    import systolic_geometry::*;
#(
    parameter int BITS = 49
) (
    input logic clk,
    input logic signed [BITS-1:0] value,
    input logic [1:0] coarse,
    input logic [3:0] fine,
    input logic rounds,
    input logic to_parity,
    input logic odd,
    input logic signed [RESULT_BITS-1:0] least,
    input logic signed [RESULT_BITS-1:0] greatest,
    input logic signed [RESULT_BITS-1:0] result
);
    logic [3:0] began = '0;
    logic signed [BITS-1:0] s1_value;
    logic [1:0] s1_coarse;
    logic signed [BITS:0] counted, rounded, s1_rounded;
    logic even, middle, was_to_parity, was_odd;
    logic signed [RESULT_BITS-1:0] was_least, was_greatest, s2_result, s3_result, s4_result;
    logic [5:0] places;
    always_comb begin
        places = {s1_coarse, fine};
        even = LATE_OFFSETS > 1 && to_parity;
        counted = (BITS + 1)'(s1_value);
        if (even) counted[11:0] = 0;
        rounded = (counted + (rounds ? (BITS + 1)'(1) <<< places : (BITS + 1)'(0))) >>> places;
        // The value is an odd number of halves if the shift drops no bit and the value plus a half is an integer.
        middle = even && rounds && (rounded <<< places) == counted + ((BITS + 1)'(1) <<< places) && !rounded[0];
        s1_rounded = rounded >>> 1;
        if (middle && rounded[1] != odd) s1_rounded = s1_rounded - 1;
    end
    always_ff @(posedge clk) begin
        began <= {began[2:0], 1'b1};
        {was_least, was_greatest, was_to_parity, was_odd} <= {least, greatest, to_parity, odd};
        s1_value <= value;
        s1_coarse <= coarse;
        s2_result <= s1_rounded < (BITS + 1)'(least) ? least
            : s1_rounded > (BITS + 1)'(greatest) ? greatest : RESULT_BITS'(s1_rounded);
        {s3_result, s4_result} <= {s2_result, s3_result};
    end
    always_comb begin
        assume (coarse != 3 && least <= greatest);
        if (began[0]) assume (least == was_least && greatest == was_greatest);
        if (began[0]) assume (to_parity == was_to_parity && odd == was_odd);
    end
    always_comb if (began[3]) assert (result == s4_result);
endmodule
bind shift_and_saturate shift_and_saturate_proof #(.BITS(BITS)) proof (.*);

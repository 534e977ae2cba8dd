// Six products in one DSP48E2: (w2 · 2^14 + w1 · 2^7 + w0) · (a1 · 2^21 + a0). The pre-adder forms the factor of
// activations.
//
// A product of −7…7 and −8…7 is in −56…56. With 64 added to each, a field of 7 bits is in 8…120, so that no field
// borrows from the field above. The product is the field minus 64, which inverts the field's uppermost bit. A field has
// no room for a sum of two products, so that nothing is accumulated here. The products are valid 4 cycles after the
// operands.
module six_products (
    input logic clk,
    input logic [17:0] weights,
    input logic signed [1:0][3:0] values,
    output logic [5:0][6:0] products  // w0 · a0, w1 · a0, w2 · a0, w0 · a1, … in two's complement
);
    // verilator lint_off UNUSEDSIGNAL
    logic [47:0] fields, unused;
    // verilator lint_on UNUSEDSIGNAL
    DSP48E2 #(
        .AMULTSEL("AD"), .BMULTSEL("B"), .PREADDINSEL("A"), .USE_MULT("MULTIPLY"), .USE_SIMD("ONE48"),
        .RND(48'({6{7'd64}})), .AREG(1), .ACASCREG(1), .DREG(1), .ADREG(1), .BREG(2), .BCASCREG(2), .MREG(1), .PREG(1),
        .CREG(0), .ALUMODEREG(0), .INMODEREG(0), .OPMODEREG(0), .CARRYINREG(0), .CARRYINSELREG(0)
    ) dsp (
        .CLK(clk), .A(30'(signed'(values[1])) <<< 21), .D(27'(signed'(values[0]))), .B(weights), .C(48'd0), .PCIN(48'd0),
        .PCOUT(unused), .P(fields), .OPMODE(9'b10_000_01_01), .ALUMODE(4'd0), .INMODE(5'b00100), .CARRYIN(1'b0),
        .CARRYINSEL(3'd0), .ACIN(30'd0), .BCIN(18'd0), .CARRYCASCIN(1'b0), .MULTSIGNIN(1'b0), .CEA1(1'b0), .CEA2(1'b1),
        .CEB1(1'b1), .CEB2(1'b1), .CED(1'b1), .CEAD(1'b1), .CEM(1'b1), .CEP(1'b1), .CEC(1'b0), .CEALUMODE(1'b0),
        .CECARRYIN(1'b0), .CECTRL(1'b0), .CEINMODE(1'b0), .RSTA(1'b0), .RSTB(1'b0), .RSTC(1'b0), .RSTD(1'b0),
        .RSTM(1'b0), .RSTP(1'b0), .RSTALLCARRYIN(1'b0), .RSTALUMODE(1'b0), .RSTCTRL(1'b0), .RSTINMODE(1'b0));
    for (genvar k = 0; k < 6; k++) begin : product_fields
        assign products[k] = {!fields[7*k+6], fields[7*k+:6]};
    end
endmodule

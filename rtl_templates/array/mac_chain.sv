// A cascade of LENGTH DSPs sums LENGTH products of packed weights and packed values. Each DSP's PCOUT drives the next
// DSP's PCIN. Every stage has a register, so operand l must arrive l cycles after operand 0 (skewed operands). The sum
// is valid LENGTH + 3 cycles after operand 0.
//
// A weight is the sum of two parts, which the pre-adder forms: w1 · 2^18 in ``high`` and w0 in ``low``. With
// INSTANTIATED, each product is a DSP48E2 primitive, because synthesis does not infer the cascade with the pre-adder.
// Without it, plain SystemVerilog lets synthesis infer DSP48E1s. The multiplier of a DSP48E1 takes 25 bits; with one
// bit more, each product would need two DSPs. Both variants give the same bits in the same cycles.
module mac_chain #(
    parameter int LENGTH = 8,
    parameter bit INSTANTIATED = 1
) (
    input logic clk,
    input logic signed [LENGTH-1:0][26:0] high,
    input logic signed [LENGTH-1:0][26:0] low,
    input logic signed [LENGTH-1:0][17:0] value,
    output logic signed [47:0] sum
);
    // verilator lint_off UNUSEDSIGNAL
    logic [LENGTH:0][47:0] cascade;
    // verilator lint_on UNUSEDSIGNAL
    assign cascade[0] = '0;

    for (genvar l = 0; l < LENGTH; l++) begin : products
        if (INSTANTIATED) begin : instantiated
            // verilator lint_off UNUSEDSIGNAL
            logic [47:0] product;
            // verilator lint_on UNUSEDSIGNAL
            DSP48E2 #(
                .AMULTSEL("AD"), .BMULTSEL("B"), .PREADDINSEL("A"), .USE_MULT("MULTIPLY"), .USE_SIMD("ONE48"),
                .AREG(1), .ACASCREG(1), .DREG(1), .ADREG(1), .BREG(2), .BCASCREG(2), .MREG(1), .PREG(1), .CREG(0),
                .ALUMODEREG(0), .INMODEREG(0), .OPMODEREG(0), .CARRYINREG(0), .CARRYINSELREG(0)
            ) dsp (
                .CLK(clk), .A(30'(signed'(high[l]))), .D(low[l]), .B(value[l]), .C(48'd0), .PCIN(cascade[l]),
                .PCOUT(cascade[l+1]), .P(product),
                .OPMODE(l == 0 ? 9'b00_000_01_01 : 9'b00_001_01_01), .ALUMODE(4'd0), .INMODE(5'b00100),
                .CARRYIN(1'b0), .CARRYINSEL(3'd0), .ACIN(30'd0), .BCIN(18'd0), .CARRYCASCIN(1'b0), .MULTSIGNIN(1'b0),
                .CEA1(1'b0), .CEA2(1'b1), .CEB1(1'b1), .CEB2(1'b1), .CED(1'b1), .CEAD(1'b1), .CEM(1'b1), .CEP(1'b1),
                .CEC(1'b0), .CEALUMODE(1'b0), .CECARRYIN(1'b0), .CECTRL(1'b0), .CEINMODE(1'b0),
                .RSTA(1'b0), .RSTB(1'b0), .RSTC(1'b0), .RSTD(1'b0), .RSTM(1'b0), .RSTP(1'b0), .RSTALLCARRYIN(1'b0),
                .RSTALUMODE(1'b0), .RSTCTRL(1'b0), .RSTINMODE(1'b0));
            // The last sum is taken from P, because PCOUT does not connect to the fabric.
            if (l == LENGTH - 1) begin : last
                assign sum = product;
            end
        end else begin : inferred
            logic signed [24:0] a, d, ad;
            logic signed [17:0] b1, b2;
            logic signed [42:0] m;
            logic signed [47:0] p;
            always_ff @(posedge clk) begin
                a <= 25'(high[l]);
                d <= 25'(low[l]);
                ad <= a + d;
                b1 <= value[l];
                b2 <= b1;
                m <= ad * b2;
                p <= signed'(cascade[l]) + 48'(m);
            end
            assign cascade[l+1] = p;
            if (l == LENGTH - 1) begin : last
                assign sum = p;
            end
        end
    end
endmodule

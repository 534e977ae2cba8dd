// A simulation model of a DSP48E2 (UG579), reduced to the modes of mac_chain and six_products: P = (A + D) · B + Z,
// where Z is PCIN, RND or 0, with their pipeline registers. It is not for synthesis, where the name refers to the
// primitive.
module DSP48E2 #(
    // verilator lint_off UNUSEDPARAM
    parameter AMULTSEL = "A", parameter BMULTSEL = "B", parameter PREADDINSEL = "A", parameter USE_MULT = "MULTIPLY",
    parameter USE_SIMD = "ONE48", parameter logic [47:0] RND = 48'd0,
    parameter int AREG = 1, parameter int ACASCREG = 1, parameter int BREG = 1,
    parameter int BCASCREG = 1, parameter int CREG = 1, parameter int DREG = 1, parameter int ADREG = 1,
    parameter int MREG = 1, parameter int PREG = 1, parameter int ALUMODEREG = 1, parameter int INMODEREG = 1,
    parameter int OPMODEREG = 1, parameter int CARRYINREG = 1, parameter int CARRYINSELREG = 1
    // verilator lint_on UNUSEDPARAM
) (
    // verilator lint_off UNUSEDSIGNAL
    input logic CLK,
    input logic [29:0] A, ACIN,
    input logic [17:0] B, BCIN,
    input logic [47:0] C, PCIN,
    input logic [26:0] D,
    input logic [8:0] OPMODE,
    input logic [3:0] ALUMODE,
    input logic [4:0] INMODE,
    input logic [2:0] CARRYINSEL,
    input logic CARRYIN, CARRYCASCIN, MULTSIGNIN, CEA1, CEA2, CEB1, CEB2, CED, CEAD, CEM, CEP, CEC, CEALUMODE,
    input logic CECARRYIN, CECTRL, CEINMODE, RSTA, RSTB, RSTC, RSTD, RSTM, RSTP, RSTALLCARRYIN, RSTALUMODE, RSTCTRL,
    input logic RSTINMODE,
    // verilator lint_on UNUSEDSIGNAL
    output logic [47:0] P, PCOUT
);
    logic signed [26:0] a, d, ad;
    logic signed [17:0] b1, b2;
    logic signed [44:0] m;
    always_ff @(posedge CLK) begin
        a <= A[26:0];
        d <= D;
        ad <= a + d;
        b1 <= B;
        b2 <= b1;
        m <= ad * b2;
        P <= (OPMODE[6:4] == 3'b001 ? PCIN : 48'd0) + (OPMODE[8:7] == 2'b10 ? RND : 48'd0) + 48'(m);
    end
    assign PCOUT = P;
endmodule

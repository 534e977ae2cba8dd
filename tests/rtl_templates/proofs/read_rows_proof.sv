// Bound into read_rows. Every map row in the port's row strides is requested piece by piece, at the address of that row
// and piece. Nothing else is requested. A command is stable until it is accepted. A row of padding between two commands
// takes one cycle for each piece that it would have.
module read_rows_proof
    import systolic_geometry::*;
#(
    parameter int PORT = 0
) (
    input logic clk,
    input logic reset,
    input logic start,
    input pass_t pass,
    input logic command_valid,
    input logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    input logic more_now,
    input number_t row,
    input number_t row_address,
    input number_t skip,
    input number_t skip_words,
    input countdown_t bursts,
    input countdown_t phases,
    input countdown_t strides
);
    localparam number_t MOST = 4;
    logic began = 1'b0, more, waited, started, steps, in_map;
    number_t stride, phase, piece;  // the current position
    number_t padded, row_start, strides_of_port;
    logic [31:0] was_address, was_words;
    pass_t was_pass;
    assign padded = stride * pass.stride + phase;
    assign in_map = padded >= pass.pad_top && padded < pass.pad_top + pass.in_height;
    assign row_start = pass.in_base + (padded - pass.pad_top) * pass.in_row_pitch;
    assign steps = more && (!in_map || (command_valid && command_ready));
    assign strides_of_port = (pass.row_strides - PORT + MAP_PORTS - 1) / MAP_PORTS;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        started <= start && !reset;
        was_pass <= pass;
        waited <= command_valid && !command_ready && !reset;
        was_address <= command_address;
        was_words <= command_words;
        if (reset) more <= 1'b0;
        else if (start) begin
            more <= pass.in_buffer == 0 && PORT < pass.row_strides;
            stride <= PORT;
            {phase, piece} <= '0;
        end else if (steps) begin
            piece <= piece == pass.bursts - 1 ? 0 : piece + 1;
            if (piece == pass.bursts - 1) begin
                phase <= phase == pass.phases - 1 ? 0 : phase + 1;
                if (phase == pass.phases - 1) begin
                    stride <= stride + MAP_PORTS;
                    if (stride + MAP_PORTS >= pass.row_strides) more <= 1'b0;
                end
            end
        end
    end
    function automatic logic counts(countdown_t count, number_t iterations, number_t turn);
        counts = count.remaining == iterations - 1 - turn && count.last == (turn == iterations - 1) && turn >= 0 && turn < iterations
            && count.initial_remaining == iterations - 1 && count.initial_last == (iterations == 1);
    endfunction
    always_comb begin
        if (!began) assume (reset);
        if (began && (more || started || start)) assume (pass == was_pass);
        if (began && more) assume (!start);
        assume (pass.row_strides > 0 && pass.row_strides <= MOST && pass.stride > 0 && pass.stride < MOST);
        assume (pass.phases > 0 && pass.phases <= pass.stride && pass.bursts > 0 && pass.bursts < MOST);
        assume (pass.pad_top >= 0 && pass.pad_top < MOST && pass.in_height > 0 && pass.in_height < 2 * MOST);
    end
    always_comb if (began) begin
        assert (more_now == more && command_valid == (more && in_map));
        if (waited) assert (command_valid && command_address == was_address && command_words == was_words);
        if (command_valid) assert (command_words == 32'(pass.burst_words));
        if (more) begin
            assert (number_t'(command_address) == number_t'(row_start + piece * pass.in_block_pitch));
            assert (row == padded && row_address == row_start);
            assert (stride >= PORT && stride < pass.row_strides && (stride - PORT) % MAP_PORTS == 0);
            assert (counts(bursts, pass.bursts, piece) && counts(phases, pass.phases, phase));
            assert (counts(strides, strides_of_port, (stride - PORT) / MAP_PORTS));
            assert (skip == MAP_PORTS * pass.stride - pass.phases + 1 && skip_words == skip * pass.in_row_pitch);
        end
    end
endmodule
bind read_rows read_rows_proof #(.PORT(PORT)) proof (.*, .more_now(more));

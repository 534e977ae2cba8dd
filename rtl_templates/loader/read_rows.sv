// Requests the rows of the input map that port PORT reads: row strides (groups of ``stride`` rows) PORT, PORT +
// MAP_PORTS, …, piece by piece. Row numbers include the padding above the map. Rows of padding are not in DDR and are
// skipped.
module read_rows
    import systolic_geometry::*;
#(
    parameter int PORT = 0
) (
    input logic clk,
    input logic reset,
    input logic start,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    output logic command_valid,
    input logic command_ready,
    output logic [31:0] command_address,
    output logic [31:0] command_words
);
    logic more, exists, steps, ends_row, ends_stride;
    number_t row, row_address, piece_address;
    countdown_t bursts, phases, strides;

    // skip, skip_words: the distance from the last row read of a row stride to the first row of the port's next one, in
    // rows and in words. A pass is valid a cycle before its start, so that products of its fields are taken from
    // registers. Only one addition to them remains at the start.
    number_t skip, skip_words, first_row, row_zero, words_below;
    assign first_row = address_product(pass.stride, PORT);
    always_ff @(posedge clk) begin
        skip <= MAP_PORTS * pass.stride - pass.phases + 1;
        skip_words <= address_product(pass.in_row_pitch, skip);
        row_zero <= pass.in_base - address_product(pass.in_row_pitch, pass.pad_top);
        words_below <= address_product(pass.in_row_pitch, first_row);
    end
    number_t first_address;
    assign first_address = row_zero + words_below;

    assign exists = row >= pass.pad_top && row < pass.pad_top + pass.in_height;
    assign command_valid = more && exists;
    assign command_address = piece_address;
    assign command_words = pass.burst_words;
    assign steps = more && (!exists || command_ready);
    assign ends_row = bursts.last;
    assign ends_stride = ends_row && phases.last;

    number_t next_address;
    assign next_address = row_address + (ends_stride ? skip_words : pass.in_row_pitch);

    always_ff @(posedge clk) begin
        if (reset) begin
            more <= 1'b0;
        end else if (start) begin
            more <= pass.in_buffer == 0 && pass.row_strides > PORT;
            row <= first_row;
            row_address <= first_address;
            piece_address <= first_address;
            bursts <= start_countdown(pass.bursts);
            phases <= start_countdown(pass.phases);
            strides <= start_countdown((pass.row_strides - PORT + MAP_PORTS - 1) / MAP_PORTS);
        end else if (steps) begin
            piece_address <= ends_row ? next_address : piece_address + pass.in_block_pitch;
            bursts <= next_countdown(bursts);
            if (ends_row) begin
                row <= row + (ends_stride ? skip : 1);
                row_address <= next_address;
                phases <= next_countdown(phases);
            end
            if (ends_stride) begin
                more <= !strides.last;
                strides <= next_countdown(strides);
            end
        end
    end
endmodule

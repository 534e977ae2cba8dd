// Requests the rows FIRST, FIRST + STEP, … of every chunk (up to CHUNK columns of a tile) from a port, one burst per
// channel block: to write the output, or to read the residual map. Both maps have the same layout of blocks; ``base``
// and ``row_pitch`` are the map's own.
module chunk_rows
    import systolic_geometry::*;
#(
    parameter int FIRST = 0,
    parameter int STEP = 1
) (
    input logic clk,
    input logic reset,
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    input number_t base,
    input number_t row_pitch,
    input logic chunk_valid,
    output logic chunk_ready,
    // verilator lint_off UNUSEDSIGNAL
    input chunk_t chunk,
    // verilator lint_on UNUSEDSIGNAL
    output logic command_valid,
    input logic command_ready,
    output logic [31:0] command_address,
    output logic [31:0] command_words
);
    logic busy, last_block;
    number_t row, block, row_address, address, rows, blocks, length, row_step;

    assign row_step = STEP * row_pitch;  // STEP is 1 or MAP_PORTS
    assign command_valid = busy && row < rows;
    assign command_address = address;
    assign command_words = length;
    assign chunk_ready = !busy;
    assign last_block = block + 1 == blocks;

    // This is a register: a pass is valid a cycle before its start.
    number_t port_base, first_address;
    always_ff @(posedge clk) port_base <= base + address_product(row_pitch, FIRST);
    assign first_address = port_base + chunk.row_offset + chunk.offset;

    always_ff @(posedge clk) begin
        if (reset) busy <= 1'b0;
        else if (!busy) busy <= chunk_valid;
        else if (row >= rows) busy <= 1'b0;
        if (!busy) begin
            row <= FIRST;
            block <= 0;
            rows <= chunk.rows;
            blocks <= chunk.blocks;
            length <= result_words(pass.value_words, chunk.columns);
            row_address <= first_address;
            address <= first_address;
        end else if (command_valid && command_ready) begin
            block <= last_block ? 0 : block + 1;
            address <= last_block ? row_address + row_step : address + pass.out_block_pitch;
            if (last_block) begin
                row <= row + STEP;
                row_address <= row_address + row_step;
            end
        end
    end
endmodule

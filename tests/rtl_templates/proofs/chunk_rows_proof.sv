// Bound into chunk_rows. Every chunk gives one command for each channel block of its rows FIRST, FIRST + STEP, …, at
// the address of that row and block. It gives no other command. A command is stable until it is accepted, and waits for
// nothing else.
module chunk_rows_proof
    import systolic_geometry::*;
#(
    parameter int FIRST = 0,
    parameter int STEP = 1
) (
    input logic clk,
    input logic reset,
    input pass_t pass,
    input number_t base,
    input number_t row_pitch,
    input logic chunk_valid,
    input logic chunk_ready,
    input chunk_t chunk,
    input logic command_valid,
    input logic command_ready,
    input logic [31:0] command_address,
    input logic [31:0] command_words,
    input number_t row_now,
    input number_t block_now,
    input number_t row_address,
    input number_t port_base,
    input number_t rows_now,
    input number_t blocks_now
);
    localparam number_t MOST = 8;
    logic began = 1'b0, busy, waited;
    chunk_t work;
    number_t row, block, row_start;
    logic [31:0] was_address, was_words;
    pass_t was_pass;
    number_t was_base, was_pitch;
    assign row_start = base + work.row_offset + work.offset + row * row_pitch;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        was_pass <= pass;
        was_base <= base;
        was_pitch <= row_pitch;
        waited <= command_valid && !command_ready && !reset;
        was_address <= command_address;
        was_words <= command_words;
        if (reset) busy <= 1'b0;
        else if (chunk_valid && chunk_ready) begin
            busy <= 1'b1;
            work <= chunk;
            row <= FIRST;
            block <= 0;
        end else if (busy && row >= work.rows) busy <= 1'b0;
        else if (command_valid && command_ready) begin
            block <= block == work.blocks - 1 ? 0 : block + 1;
            if (block == work.blocks - 1) row <= row + STEP;
        end
    end
    always_comb begin
        if (!began) assume (reset);
        // A chunk arrives some cycles after its pass.
        if (began && (busy || chunk_valid)) assume (pass == was_pass && base == was_base && row_pitch == was_pitch);
        assume (chunk.rows > 0 && chunk.rows < MOST && chunk.blocks > 0 && chunk.blocks < MOST);
        assume (pass.value_words == 1 || pass.value_words == RESULT_WORDS);
    end
    always_comb if (began) begin
        assert (chunk_ready == !busy && command_valid == (busy && row < work.rows));
        if (waited) assert (command_valid && command_address == was_address && command_words == was_words);
        if (busy) begin
            assert (row_now == row && block_now == block && rows_now == work.rows && blocks_now == work.blocks);
            assert (row >= FIRST && (row - FIRST) % STEP == 0 && row < MOST + STEP && block >= 0 && block < work.blocks);
            assert (work.rows > 0 && work.rows < MOST && work.blocks < MOST && row_address == row_start);
            assert (number_t'(command_address) == number_t'(row_start + block * pass.out_block_pitch));
            assert (number_t'(command_words) == number_t'(work.columns * (pass.value_words == 1 ? 1 : RESULT_WORDS)));
        end
        if (chunk_valid) assert (port_base == number_t'(base + FIRST * row_pitch));
    end
endmodule
bind chunk_rows chunk_rows_proof #(.FIRST(FIRST), .STEP(STEP)) proof (
    .*, .row_now(row), .block_now(block), .rows_now(rows), .blocks_now(blocks));

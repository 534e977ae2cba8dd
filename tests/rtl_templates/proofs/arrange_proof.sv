// Bound into arrange. A chunk takes exactly the results of its columns and rows, into an empty half of the buffer. Then
// every port gets the words of its rows, in their number, chunk after chunk. An empty half takes results if there is a
// chunk. A full half gives every port a word in each cycle, unless a port's FIFO has no room.
module arrange_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic done,
    input pass_t pass,
    input logic chunk_valid,
    input logic chunk_ready,
    input chunk_t chunk,
    input logic result_valid,
    input logic result_ready,
    input logic [MAP_PORTS-1:0] words_valid,
    input logic [MAP_PORTS-1:0] words_ready,
    // inside
    input logic [1:0] full,
    input chunk_t [1:0] chunks_now,
    input logic half,
    input logic out_half,
    input number_t x,
    input number_t group,
    input number_t row,
    input number_t block,
    input number_t column,
    input number_t word,
    input logic drain,
    input logic [MAP_PORTS-1:0] room,
    input logic [MAP_PORTS-1:0] s1_valid,
    input logic [MAP_PORTS-1:0][7:0] held
);
    localparam number_t MOST = 2 * MAP_PORTS;  // rows of a chunk
    logic began = 1'b0, chunk_waited, started;
    pass_t was_pass;
    chunk_t was_chunk;
    chunk_t [1:0] chunks;  // chunks that are in the buffer
    number_t columns, groups;  // columns and groups that have arrived of the chunk that is being filled
    number_t [MAP_PORTS-1:0] owed;  // words that a port has to get
    logic fill, last_group, last_column, fill_done;
    assign fill = result_valid && result_ready;
    assign last_group = (groups + 1) * SAVE_ROWS >= chunk.rows;
    assign last_column = columns == chunk.columns - 1;
    assign fill_done = fill && last_group && last_column;

    function automatic number_t port_rows(number_t rows, number_t first, number_t port);
        return rows - first > port ? (rows - first - port + MAP_PORTS - 1) / MAP_PORTS : 0;
    endfunction
    function automatic number_t row_words(chunk_t of_chunk);
        return of_chunk.blocks * of_chunk.columns * (pass.value_words == 1 ? 1 : RESULT_WORDS);
    endfunction
    function automatic number_t port_words(chunk_t of_chunk, number_t port);
        return port_rows(of_chunk.rows, 0, port) * row_words(of_chunk);
    endfunction
    number_t through;  // words of the current row that were written out
    number_t [MAP_PORTS-1:0] remaining;  // words to write out, of the current chunk and of the next one
    assign through = (block * chunks[out_half].columns + column) * pass.value_words + word;
    always_comb begin
        for (int port = 0; port < MAP_PORTS; port++) begin
            remaining[port] = 0;
            if (full[out_half]) remaining[port] = port_rows(chunks[out_half].rows, row, number_t'(port)) * row_words(chunks[out_half])
                - (row + port < chunks[out_half].rows ? through : 0);
            if (full[!out_half]) remaining[port] = remaining[port] + port_words(chunks[!out_half], number_t'(port));
        end
    end

    always_ff @(posedge clk) begin
        began <= 1'b1;
        was_pass <= pass;
        was_chunk <= chunk;
        chunk_waited <= chunk_valid && !chunk_ready && !reset;
        if (reset) begin
            {columns, groups} <= '0;
            owed <= '0;
        end else begin
            if (fill) begin
                groups <= last_group ? 0 : groups + 1;
                if (last_group) columns <= last_column ? 0 : columns + 1;
            end
            if (fill_done) chunks[half] <= chunk;
            for (int port = 0; port < MAP_PORTS; port++)
                owed[port] <= owed[port] + (fill_done ? port_words(chunk, number_t'(port)) : 0)
                    - number_t'(words_valid[port] && words_ready[port]);
        end
    end
    always_comb begin
        if (!began) assume (reset);
        if (began && !(done && !chunk_valid)) assume (pass == was_pass);
        if (began && chunk_waited) assume (chunk_valid && chunk == was_chunk);
        assume (chunk.rows > 0 && chunk.rows <= MOST && chunk.rows <= MAX_OUTPUT_ROWS);
        assume (chunk.columns > 0 && chunk.columns <= CHUNK && chunk.blocks > 0 && chunk.blocks <= TILE_BLOCKS);
        assume (pass.value_words == 1 || pass.value_words == RESULT_WORDS);
        assume (pass.out_buffer == 0);
    end
    always_comb if (began) begin
        assert (chunk_ready == fill_done);
        assert (!fill || (chunk_valid && !full[half]));
        // Every owed word is in the buffer, in a stage or in the port's FIFO.
        for (int port = 0; port < MAP_PORTS; port++)
            assert (owed[port] == remaining[port] + number_t'(s1_valid[port]) + number_t'(held[port]));
        if (done) assert (owed == '0 && !chunk_valid);
        // The halves are filled and emptied in turn.
        assert (full == 2'b11 || full == 2'b00 ? half == out_half : full[out_half] && half != out_half);
        assert (x == columns && group == groups && columns >= 0 && groups >= 0);
        if (columns != 0 || groups != 0) assert (chunk_valid && columns < chunk.columns && groups * SAVE_ROWS < chunk.rows);
        for (int h = 0; h < 2; h++) if (full[h]) begin
            assert (chunks[h].rows > 0 && chunks[h].rows <= MOST && chunks[h].columns > 0 && chunks[h].columns <= CHUNK);
            assert (chunks_now[h] == chunks[h]);
            assert (chunks[h].blocks > 0 && chunks[h].blocks <= TILE_BLOCKS);
        end
        if (full[out_half]) begin
            assert (row >= 0 && row < chunks[out_half].rows && row % MAP_PORTS == 0);
            assert (block >= 0 && block < chunks[out_half].blocks && column >= 0 && column < chunks[out_half].columns);
            assert (word >= 0 && word < pass.value_words);
        end else assert (row == 0 && block == 0 && column == 0 && word == 0);
        // The reasons for waiting.
        if (chunk_valid && result_valid && !fill) assert (full == 2'b11);
        if (full[out_half] && !drain) assert (room != '1);
        for (int port = 0; port < MAP_PORTS; port++) if (!room[port]) assert (words_valid[port]);
    end
endmodule
bind arrange arrange_proof proof (.*, .chunks_now(chunks), .held({8'(ports[1].saved.count), 8'(ports[0].saved.count)}));

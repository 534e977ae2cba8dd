// The rows of a tile whose first row is row ``first_row`` of the convolution. The last row of the tile above is stored
// if its pool window reaches into this tile, which happens if ROWS is odd or the pool's stride is 1.
module tile_rows
    import systolic_geometry::*;
(
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    input number_t first_row,
    input logic first,
    input logic last,
    output tile_rows_t rows
);
    number_t available;
    always_comb begin
        rows.rows = minimum(ROWS, pass.out_height - first_row);
        if (pass.pool_size == 1) rows.stored_rows = 0;
        else if (pass.pool_stride == 2) rows.stored_rows = first_row & 1;
        else rows.stored_rows = number_t'(!first);
        available = rows.stored_rows + rows.rows;
        if (pass.pool_size == 1) rows.output_rows = UPSCALE > 1 && pass.upscale > 1 ? 2 * available : available;
        else if (pass.pool_stride == 2) rows.output_rows = last ? (available + 1) >>> 1 : available >>> 1;
        else rows.output_rows = last ? available : available - 1;
    end
endmodule

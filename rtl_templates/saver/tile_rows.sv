// The rows of a tile whose first row is row ``rows_above`` of the convolution. The last row of the tile above is stored
// if its pool window reaches into this tile, which happens if ROWS is odd or the pool's stride is 1.
module tile_rows
    import systolic_geometry::*;
(
    // verilator lint_off UNUSEDSIGNAL
    input pass_t pass,
    // verilator lint_on UNUSEDSIGNAL
    input number_t rows_above,
    input logic first,
    input logic last,
    output tile_rows_t rows
);
    number_t available;
    always_comb begin
        rows.rows = minimum(ROWS, pass.out_height - rows_above);
        if (pass.pool_size == 1) rows.kept = 0;
        else if (pass.pool_stride == 2) rows.kept = rows_above & 1;
        else rows.kept = number_t'(!first);
        available = rows.kept + rows.rows;
        if (pass.pool_size == 1) rows.saved = UPSCALE > 1 && pass.upscale > 1 ? 2 * available : available;
        else if (pass.pool_stride == 2) rows.saved = last ? (available + 1) >>> 1 : available >>> 1;
        else rows.saved = last ? available : available - 1;
    end
endmodule

// Bound into tile_rows. A tile has the convolution's rows from rows_above on: ROWS of them, or the rest. It saves the
// rows of the pooled map whose windows end in the tile, and the last tile saves all rows that are left. So each row is
// saved once. The tile keeps the rows of the tile above that these windows reach.
module tile_rows_proof
    import systolic_geometry::*;
(
    input pass_t pass,
    input number_t first_row,
    input logic first,
    input logic last,
    input tile_rows_t rows
);
    number_t through;
    assign through = minimum(first_row + ROWS, pass.out_height);

    // Rows of the pooled map whose windows are complete in the first ``count`` rows or, with ``all``, that begin there.
    function automatic number_t pooled(number_t count, logic all);
        if (pass.pool_size == 1) return UPSCALE > 1 && pass.upscale == 2 ? count + count : count;
        if (pass.pool_stride == 2) return all ? (count + 1) / 2 : count / 2;
        return all || count == 0 ? count : count - 1;
    endfunction

    always_comb begin
        assume (first_row >= 0 && first_row % ROWS == 0 && first_row < pass.out_height && pass.out_height < 64);
        assume (first == (first_row == 0) && last == (through == pass.out_height));
        assume (pass.pool_size == 1 || (pass.pool_size == 2 && (pass.pool_stride == 1 || pass.pool_stride == 2)));
        assume (pass.upscale == 1 || pass.upscale == 2);
    end
    always_comb begin
        assert (rows.rows == through - first_row);
        assert (rows.output_rows == pooled(through, last) - pooled(first_row, 1'b0));
        if (pass.pool_size == 1) assert (rows.stored_rows == 0);
        else assert (rows.stored_rows == first_row - (pass.pool_stride == 2 ? 2 : 1) * pooled(first_row, 1'b0));
    end
endmodule
bind tile_rows tile_rows_proof proof (.*);

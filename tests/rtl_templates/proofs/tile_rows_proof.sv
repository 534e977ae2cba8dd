// Bound into tile_rows. A tile has the convolution's rows from rows_above on: ROWS of them, or the rest. It saves the
// rows of the pooled map whose windows end in the tile, and the last tile saves all rows that are left. So each row is
// saved once. The tile keeps the rows of the tile above that these windows reach.
module tile_rows_proof
    import systolic_geometry::*;
(
    input pass_t pass,
    input number_t rows_above,
    input logic first,
    input logic last,
    input tile_rows_t rows
);
    number_t through;
    assign through = minimum(rows_above + ROWS, pass.out_height);

    // Rows of the pooled map whose windows are complete in the first ``count`` rows or, with ``all``, that begin there.
    function automatic number_t pooled(number_t count, logic all);
        if (pass.pool_size == 1) return UPSCALE > 1 && pass.upscale == 2 ? count + count : count;
        if (pass.pool_stride == 2) return all ? (count + 1) / 2 : count / 2;
        return all || count == 0 ? count : count - 1;
    endfunction

    always_comb begin
        assume (rows_above >= 0 && rows_above % ROWS == 0 && rows_above < pass.out_height && pass.out_height < 64);
        assume (first == (rows_above == 0) && last == (through == pass.out_height));
        assume (pass.pool_size == 1 || (pass.pool_size == 2 && (pass.pool_stride == 1 || pass.pool_stride == 2)));
        assume (pass.upscale == 1 || pass.upscale == 2);
    end
    always_comb begin
        assert (rows.rows == through - rows_above);
        assert (rows.saved == pooled(through, last) - pooled(rows_above, 1'b0));
        if (pass.pool_size == 1) assert (rows.kept == 0);
        else assert (rows.kept == rows_above - (pass.pool_stride == 2 ? 2 : 1) * pooled(rows_above, 1'b0));
    end
endmodule
bind tile_rows tile_rows_proof proof (.*);

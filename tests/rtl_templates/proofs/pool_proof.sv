// Bound into pool. Each column of every tile arrives once and is output once, group by group, in order, with the tile's
// channel. No group is output before the columns of its window have arrived, and no column arrives that no group needs.
// The tile is accepted with its last group only, and the last group of the last tile is marked. A group is stable until
// it is accepted. Unless the pool waits for a neighbour, a column arrives or a group is output. A tile has a fixed
// number of both.
module pool_proof
    import systolic_geometry::*;
(
    input logic clk,
    input logic reset,
    input logic start,
    input logic done,
    input pass_t pass,
    input logic tile_valid,
    input logic tile_ready,
    input pool_tile_t tile,
    input logic sums_valid,
    input logic sums_ready,
    input sums_t [ROWS-1:0][POSITIONS-1:0] sums,
    input logic group_valid,
    input logic group_ready,
    input group_t group,
    input factors_t factors,
    // the next column and group of it
    input number_t x,
    input number_t count,
    input logic repeats,
    input countdown_t kernel_columns,
    input countdown_t kernel_rows,
    input logic first_place,
    input sums_t [ROWS-1:0] column_before,  // the last one that arrived
    input number_t shown_count,
    input tile_rows_t shown_rows,
    input sums_t [ROWS-1:0] window,  // the sums of the group at the output
    input sums_t [ROWS-1:0] factor,  // and their factors
    input sums_t memory[KEPT_DEPTH]
);
    localparam number_t MOST = 1 << ($bits(number_t) - 3);
    logic no_pool, stride_one, stride_two, stores_row, places, compares_places, multiplies_maps, upscales, together;
    assign no_pool = pass.pool_size == 1;
    assign stride_one = !no_pool && pass.pool_stride == 1;
    assign stride_two = !no_pool && !stride_one;
    assign stores_row = !no_pool && pass.row_tiles > 1 && (stride_one || ROWS % 2 == 1);
    assign compares_places = WINDOWS > 0 && pass.pool_stride == 0;
    assign multiplies_maps = MAP_PRODUCTS > 0 && pass.pool_stride < 0;
    assign places = compares_places || multiplies_maps;
    assign upscales = UPSCALE > 1 && pass.upscale > 1;
    assign together = POSITIONS > 1 && pass.positions > 1;

    number_t columns, outputs;  // columns that arrive, and columns that are output
    assign columns = no_pool && !upscales ? pass.save_width : pass.out_width;
    assign outputs = stride_two ? (columns + 1) >>> 1 : columns;

    // The parts of a tile that have arrived and that were output. A group counts as output in its first valid cycle.
    logic began = 1'b0, running, waited, took, could, starved, taken;
    number_t arrived, column, group_of_column;  // words of columns, or places of a column
    number_t place, row_of_places;  // of a window whose places arrive one after the other
    logic last_of_row, last_place;
    assign last_of_row = !places || place == pass.kernel_groups - 1;
    assign last_place = !places || (last_of_row && row_of_places == pass.kernel_height - 1);
    logic repeat_next;
    pool_tile_t past;
    group_t shown;
    number_t group_shown;
    tile_rows_t rows_shown;
    factors_t shown_factors;
    logic fresh;
    assign fresh = group_valid && !waited;

    logic ends_column, ends_output, ends_tile;
    assign ends_column = group_of_column == past.last_group;
    assign ends_output = ends_column && (!upscales || repeat_next);
    assign ends_tile = ends_output && column == outputs - 1;
    number_t next_column, next_group;
    logic next_again;
    assign next_group = !fresh ? group_of_column : ends_column ? 0 : group_of_column + 1;
    assign next_again = !fresh ? repeat_next : ends_column ? upscales && !repeat_next : repeat_next;
    assign next_column = !fresh ? column : ends_tile ? 0 : ends_output ? column + 1 : column;

    // Words that have arrived when a column's first group is output. A word of two columns counts with the second one.
    number_t reached, needed;
    assign reached = stride_one ? minimum(column + 2, columns) : stride_two ? minimum(2 * column + 2, columns) : column + 1;
    assign needed = !together ? reached : reached == columns ? (columns + 1) >>> 1 : reached >>> 1;

    number_t at_hand, words;  // columns and words of this tile that have arrived
    assign at_hand = minimum(x + number_t'(count != 0 || repeats), columns);
    assign words = !together ? at_hand : at_hand == columns ? (columns + 1) >>> 1 : at_hand >>> 1;

    always_ff @(posedge clk) begin
        began <= 1'b1;
        waited <= group_valid && !group_ready && !reset;
        took <= sums_valid && sums_ready && !reset;
        taken <= tile_valid && tile_ready && !reset;
        could <= running && tile_valid && sums_valid && (!group_valid || group_ready) && !reset
            && !(fresh && stores_row && columns == 1 && next_group == 0);  // the kept row is written first
        starved <= running && tile_valid && !sums_valid && (!group_valid || group_ready) && !reset;
        past <= tile;
        shown <= group;
        rows_shown <= fresh ? past.rows : rows_shown;
        group_shown <= fresh ? group_of_column : group_shown;
        shown_factors <= factors;
        if (reset) running <= 1'b0;
        else if (start) running <= 1'b1;
        else if (tile_valid && tile_ready && tile.last) running <= 1'b0;
        if (reset || start) begin
            {arrived, column, group_of_column, repeat_next, place, row_of_places} <= '0;
        end else begin
            if (sums_valid && sums_ready) begin
                place <= last_of_row ? 0 : place + 1;
                if (places && last_of_row) row_of_places <= last_place ? 0 : row_of_places + 1;
            end
            arrived <= (taken ? 0 : arrived) + number_t'(sums_valid && sums_ready && last_place);
            column <= next_column;
            group_of_column <= next_group;
            repeat_next <= next_again;
        end
    end

    // --- data: the sums of a window -----------------------------------------------------------------------------
    function automatic sums_t [ROWS-1:0] larger(sums_t [ROWS-1:0] a, sums_t [ROWS-1:0] b);
        for (int m = 0; m < ROWS; m++) larger[m] = signed'(a[m]) > signed'(b[m]) ? a[m] : b[m];
    endfunction
    function automatic sums_t [ROWS-1:0] picked(sums_t [ROWS-1:0][POSITIONS-1:0] word, logic second);
        for (int m = 0; m < ROWS; m++) picked[m] = word[m][second ? POSITIONS - 1 : 0];
    endfunction

    sums_t [ROWS-1:0][POSITIONS-1:0] seen, preceding, last_taken;
    sums_t [ROWS-1:0] best, best_now, pooled, pooled_now;
    sums_t [ROWS-1:0] place_before, place_before_now;  // the place before the window's last one
    logic was_first, shows_column;
    number_t newest;  // column of the window
    assign newest = stride_two ? minimum(2 * column + 1, columns - 1) : stride_one ? minimum(column + 1, columns - 1) : column;
    assign shows_column = fresh && group_of_column == 0 && !repeat_next;
    assign last_taken = took ? seen : preceding;
    assign best_now = !took ? best : was_first ? picked(seen, 1'b0) : larger(best, picked(seen, 1'b0));
    always_comb begin
        automatic sums_t [ROWS-1:0] this_column = picked(seen, together && newest[0]);
        automatic sums_t [ROWS-1:0] last_column
            = together && newest[0] ? picked(seen, 1'b0) : picked(preceding, together);
        if (stride_one && column == columns - 1) this_column = picked(preceding, together && newest[0]);
        pooled_now = pooled;
        place_before_now = shows_column ? picked(preceding, 1'b0) : place_before;
        if (shows_column) begin
            pooled_now = this_column;
            if ((stride_one && column != columns - 1) || (stride_two && newest[0])) pooled_now = larger(this_column, last_column);
            if (compares_places) pooled_now = best_now;
        end
    end

    // A pool may need the last row of a tile for the tile below. The proof follows the kept value of any one column.
    logic written, sums_waited;
    number_t stored_address, any;  // any: undriven, so that the solver chooses it
    sums_t stored_row;
    always_ff @(posedge clk) begin
        if (reset) begin
            stored_address <= any;
            written <= 1'b0;
        end else if (shows_column && stores_row && past.stored_address + column == stored_address) begin
            stored_row <= pooled_now[ROWS-1];
            written <= 1'b1;
        end
        seen <= sums;
        preceding <= last_taken;
        best <= best_now;
        pooled <= pooled_now;
        place_before <= place_before_now;
        was_first <= place == 0 && row_of_places == 0;
    end
    always_comb begin
        assume (any >= 0 && any < KEPT_DEPTH);
        if (stores_row) assume (tile.stored_address >= 0 && tile.stored_address + outputs <= KEPT_DEPTH);
        assume (tile.rows.rows > 0 && tile.rows.rows <= ROWS && (tile.rows.stored_rows == 0 || (tile.rows.stored_rows == 1 && stores_row)));
        assume (tile.rows.output_rows > 0 && (tile.last_group + 1) * SAVE_ROWS >= tile.rows.output_rows);
        if (no_pool) assume (tile.rows.stored_rows == 0 && tile.rows.output_rows == (upscales ? 2 * tile.rows.rows : tile.rows.rows));
        if (stride_two) assume (2 * tile.rows.output_rows <= tile.rows.stored_rows + tile.rows.rows + 1);
        if (stride_one) assume (tile.rows.output_rows <= tile.rows.stored_rows + tile.rows.rows);
        if (began && sums_waited) assume (sums_valid && sums == seen);
        if (pass.pool_size == 2) assume (pass.pool_stride == 1 || pass.pool_stride == 2);
        assume (pass.pool_size == 1 || pass.pool_size == 2);
    end

    always_comb if (began) begin
        if (written) assert (stored_address >= 0 && stored_address < KEPT_DEPTH && memory[stored_address] == stored_row);
        if (running) begin
            if (together && at_hand[0] && at_hand != columns) assert (sums_valid && sums == seen);
            if ((stride_one || stride_two) && at_hand > 0)
                assert (column_before == (together && at_hand[0] && at_hand != columns
                    ? picked(sums, 1'b0) : picked(last_taken, together && !at_hand[0])));
            if (places && !first_place) assert (column_before == (compares_places ? best_now : picked(last_taken, 1'b0)));
        end
        if (group_valid || (running && (count != 0 || repeats))) begin
            assert (window == pooled_now);
            if (multiplies_maps) assert (factor == place_before_now);
        end
        if (fresh) for (int r = 0; r < SAVE_ROWS; r++) begin
            automatic number_t row = group_of_column * SAVE_ROWS + r;
            automatic number_t upper = (upscales ? row >>> 1 : stride_two ? 2 * row : row) - past.rows.stored_rows;
            automatic sums_t value = upper < 0 ? stored_row : pooled_now[upper];
            if (!no_pool && upper + 1 < past.rows.rows && signed'(pooled_now[upper+1]) > signed'(value))
                value = pooled_now[upper+1];
            if (row < past.rows.output_rows) begin
                assert (upper >= -1 && upper < past.rows.rows);
                if (multiplies_maps) assert (factors[r][0] == place_before_now[row][0][VALUE_BITS-1:0]);
                if (upper >= 0 || (written && past.stored_address + column == stored_address)) assert (group.row[r] == value);
            end
        end
    end

    always_ff @(posedge clk) sums_waited <= sums_valid && !sums_ready && !reset;
    function automatic logic counts(countdown_t countdown, number_t iterations, number_t turn);
        counts = countdown.remaining == iterations - 1 - turn && countdown.last == (turn == iterations - 1) && turn >= 0 && turn < iterations
            && countdown.initial_remaining == iterations - 1 && countdown.initial_last == (iterations == 1);
    endfunction

    pass_t was_pass;
    number_t was_x;
    pool_tile_t was_tile;
    logic was_running, started, tile_waited;
    always_ff @(posedge clk) begin
        was_pass <= pass;
        was_x <= x;
        was_running <= running;
        started <= start && !reset;
        tile_waited <= tile_valid && !tile_ready && !reset;
        was_tile <= tile;
    end
    always_comb begin
        if (!began) assume (reset);
        if (began && running) assume (!start);
        if (began && (was_running || started || group_valid)) assume (pass == was_pass);
        if (began && group_valid) assume (!start);
        if (began && tile_waited) assume (tile_valid && tile == was_tile);
        assume (columns > 0 && columns < MOST);
        assume (tile.last_group >= 0 && tile.last_group < MOST);
        assume (pass.kernel_groups > 0 && pass.kernel_groups < MOST && pass.kernel_height > 0 && pass.kernel_height < MOST);
        assume (pass.positions == 1 || pass.positions == 2);
        // The combinations that layers have.
        if (places) assume (no_pool && !upscales && !together);
        if (upscales) assume (no_pool);
        if (multiplies_maps) assume (pass.kernel_groups > 1 || pass.kernel_height > 1);
    end

    always_comb if (began) begin
        assert (done == !running);
        if (group_valid) begin
            assert (shown_count == (fresh ? group_of_column : group_shown) && shown_count >= 0 && shown_count < MOST);
            assert (shown_rows == (fresh ? past.rows : rows_shown));
            assert (shown_rows.stored_rows >= 0 && shown_rows.stored_rows <= 1 && shown_rows.rows >= 0 && shown_rows.rows <= ROWS);
        end
        if (waited) assert (group_valid && group == shown && factors == shown_factors);
        if (fresh) begin
            assert (arrived == needed);
            assert (group.channel == past.channel && group.last == (ends_tile && past.last));
        end
        assert (taken == (fresh && ends_tile));
        if (running) assert (x >= 0 && x < columns + number_t'(stride_one));
        if (could) assert (took || fresh || (together && x == was_x + 1));
        if (starved && !fresh) assert (next_group == 0 && !next_again);
        // The state of the module.
        if (running) begin
            assert (count == next_group && repeats == next_again && (!repeats || upscales));
            assert (next_column >= 0 && next_column < outputs);
            if (count != 0 || repeats || x != 0) assert (tile_valid && tile == was_tile);
            if (count != 0) assert (count > 0 && count <= tile.last_group);
            if (no_pool) assert (x == next_column);
            if (stride_one) assert (x == next_column + 1 || (x == 0 && next_column == 0 && count == 0));
            if (stride_two) assert (x == minimum(2 * next_column + 1, columns - 1) || (x == 2 * next_column && count == 0));
            assert ((taken ? 0 : arrived) == words);
            if (places) begin
                assert (counts(kernel_columns, pass.kernel_groups, count == 0 ? place : pass.kernel_groups - 1));
                assert (counts(kernel_rows, pass.kernel_height, count == 0 ? row_of_places : pass.kernel_height - 1));
                assert (count == 0 || (place == 0 && row_of_places == 0));
                if (count == 0) assert (first_place == (place == 0 && row_of_places == 0));
            end
        end
    end
endmodule
bind pool pool_proof proof (
    .*, .column_before(column), .shown_count(s1_count), .shown_rows(s1_rows), .window(s1_window),
    .factor(s1_previous_place), .memory(stored_rows.memory));

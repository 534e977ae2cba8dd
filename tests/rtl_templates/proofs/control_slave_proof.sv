// Bound into control_slave. Every write and every read is accepted once and answered once. An answer and the data of a
// read are stable until they are accepted. A strobed byte is stored, for any address within its word, and no other byte
// changes. A register is read as it was stored. The bits of control are the ones of ap_ctrl_hs. A start reaches the
// engine once, for one cycle, and not while the engine runs. Its end is read once, in any cycle. An end raises an
// enabled interrupt until a 1 is written to its status. An access waits only for an answer that was not accepted.
// An argument is stable for two cycles when a start reaches the engine, as timing.xdc of the IP requires, unless the start
// is an automatic restart.
module control_slave_proof #(
    parameter int ADDRESS_BITS = 6
) (
    input logic clk,
    input logic reset,
    input logic [ADDRESS_BITS-1:0] awaddr,
    input logic awvalid,
    input logic awready,
    input logic [31:0] wdata,
    input logic [3:0] wstrb,
    input logic wvalid,
    input logic wready,
    input logic [1:0] bresp,
    input logic bvalid,
    input logic bready,
    input logic [ADDRESS_BITS-1:0] araddr,
    input logic arvalid,
    input logic arready,
    input logic [31:0] rdata,
    input logic [1:0] rresp,
    input logic rvalid,
    input logic rready,
    input logic interrupt,
    input logic [63:0] maps,
    input logic [31:0] first,
    input logic [31:0] current,
    input logic current_written,
    input logic start,
    input logic done,
    // inside
    input logic started,
    input logic finished,
    input logic idle,
    input logic ready,
    input logic restarts,
    input logic enabled,
    input logic [1:0] enables,
    input logic [1:0] states,
    input logic current_seen
);
    localparam int WORDS = 1 << (ADDRESS_BITS - 2);
    logic began = 1'b0, was_start;
    logic [1:0] writes_owed, reads_owed;  // answers that are due
    logic [31:0] answer;
    logic writes, reads;
    logic [ADDRESS_BITS-3:0] write_word, read_word;
    assign writes = awvalid && awready;
    assign reads = arvalid && arready;
    assign write_word = awaddr[ADDRESS_BITS-1:2];
    assign read_word = araddr[ADDRESS_BITS-1:2];

    // The bytes that the host has written, and the events that the engine has reported.
    logic [WORDS-1:0][3:0][7:0] kept;
    logic asked, again, running, ended, told_ready, gave;

    // An argument was written in the last cycle, or in the one before; what was asked for in the last cycle, or by a restart.
    logic written, written_before, asked_now, restarted;
    logic [1:0] status;
    function automatic logic control_is(logic [3:0] strobe, logic [ADDRESS_BITS-3:0] word);
        return writes && strobe[0] && write_word == word;
    endfunction

    always_ff @(posedge clk) begin
        began <= 1'b1;
        was_start <= start && !reset;
        writes_owed <= reset ? '0 : writes_owed + 2'(writes) - 2'(bvalid && bready);
        reads_owed <= reset ? '0 : reads_owed + 2'(reads) - 2'(rvalid && rready);
        for (int byte_of_word = 0; byte_of_word < 4; byte_of_word++)
            if (writes && wstrb[byte_of_word]) kept[write_word][byte_of_word] <= wdata[8*byte_of_word+:8];
        if (reset) begin
            kept <= '0;
            {asked, again, running, ended, told_ready, gave, status} <= '0;
        end else begin
            asked <= (control_is(wstrb, '0) && wdata[0]) || (done ? again : asked);
            if (control_is(wstrb, '0)) again <= wdata[7];
            running <= (running || start) && !done;
            ended <= done || (ended && !(reads && read_word == '0));
            told_ready <= done || (told_ready && !(reads && read_word == '0));
            gave <= current_written || (gave && !(reads && read_word == 'h28 / 4));
            for (int i = 0; i < 2; i++)
                status[i] <= (done && kept[2][0][i]) || (status[i] ^ (control_is(wstrb, 'hc / 4) && wdata[i]));
        end
        case (read_word)
            'h0: answer <= {22'd0, interrupt, 1'b0, again, 3'd0, told_ready, !running && !asked, ended, asked};
            'h4 / 4: answer <= 32'(kept[1][0][0]);
            'h8 / 4: answer <= 32'(kept[2][0][1:0]);
            'hc / 4: answer <= 32'(status);
            'h10 / 4, 'h14 / 4, 'h1c / 4: answer <= kept[read_word];
            'h24 / 4: answer <= current;
            'h28 / 4: answer <= 32'(gave);
            default: answer <= '0;
        endcase
        if (!reads) answer <= answer;
        written <= writes && !reset && (write_word == 'h10 / 4 || write_word == 'h14 / 4 || write_word == 'h1c / 4);
        written_before <= written;
        asked_now <= control_is(wstrb, '0) && wdata[0] && !reset;
        restarted <= !reset && done && again;
    end

    always_comb begin
        if (!began) assume (reset);
        assume (!done || running);  // only a running engine can end
    end
    always_comb if (began) begin
        // Each access has one answer, in order.
        assert (awready == wready && (!awready || (awvalid && wvalid)) && bresp == '0 && rresp == '0);
        assert (bvalid == (writes_owed != 0) && writes_owed <= 1);
        assert (rvalid == (reads_owed != 0) && reads_owed <= 1);
        if (rvalid) assert (rdata == answer);
        // The reasons for waiting.
        if (!reset && awvalid && wvalid && !awready) assert (bvalid);
        if (!reset && arvalid && !arready) assert (rvalid);
        // The engine's side.
        assert (start == (asked && !running) && !(start && was_start));
        assert (maps == {kept[5], kept[4]} && first == kept[7]);
        if (start && !restarted) assert (asked_now && !written && !written_before);
        assert (!written || writes_owed == 1);
        assert (!(asked_now && (written || written_before)));
        assert (interrupt == (kept[1][0][0] && status != '0));
        // The state of the module.
        assert (started == asked && restarts == again && idle == !running && finished == ended && ready == told_ready);
        assert (enabled == kept[1][0][0] && enables == kept[2][0][1:0] && states == status && current_seen == gave);
    end
endmodule
bind control_slave control_slave_proof #(.ADDRESS_BITS(ADDRESS_BITS)) proof (.*);

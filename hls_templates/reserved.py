"""The reserved words of hardware languages and Tcl, which no module, port, cell or design may have as its name.

Sources: IEEE 1364-2005 (Verilog) annex B, IEEE 1800-2017 (SystemVerilog, beyond Verilog) annex B, IEEE 1076-2008 (VHDL)
15.10. VHDL ignores case. Tcl has no reserved words, but a name that equals a built-in command (Tcl 8.6) would run this
command in a script.
"""

from __future__ import annotations

from boards.errors import InvalidValueError

_VERILOG = """
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default defparam
    design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive endspecify endtable
    endtask event for force forever fork function generate genvar highz0 highz1 if ifnone incdir include initial inout
    input instance integer join large liblist library localparam macromodule medium module nand negedge nmos nor
    noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1
    scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0
    tranif1 tri tri0 tri1 triand trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor xor
"""
_SYSTEM_VERILOG = """
    accept_on alias always_comb always_ff always_latch assert assume before bind bins binsof bit break byte chandle
    checker class clocking const constraint context continue cover covergroup coverpoint cross dist do endchecker
    endclass endclocking endgroup endinterface endpackage endprogram endproperty endsequence enum eventually expect
    export extends extern final first_match foreach forkjoin global iff ignore_bins illegal_bins implements implies
    import inside int interconnect interface intersect join_any join_none let local logic longint matches modport
    nettype new nexttime null package packed priority program property protected pure rand randc randcase randsequence
    ref reject_on restrict return s_always s_eventually s_nexttime s_until s_until_with sequence shortint shortreal
    soft solve static string strong struct super sync_accept_on sync_reject_on tagged this throughout timeprecision
    timeunit type typedef union unique unique0 until until_with untyped var virtual void wait_order weak wildcard with
    within
"""
_VHDL = """
    abs access after alias all and architecture array assert assume assume_guarantee attribute begin block body buffer
    bus case component configuration constant context cover default disconnect downto else elsif end entity exit
    fairness file for force function generate generic group guarded if impure in inertial inout is label library
    linkage literal loop map mod nand new next nor not null of on open or others out package parameter port postponed
    procedure process property protected pure range record register reject release rem report restrict
    restrict_guarantee return rol ror select sequence severity shared signal sla sll sra srl strong subtype then to
    transport type unaffected units until use variable vmode vprop vunit wait when while with xnor xor
"""
_TCL = """
    after append apply array bgerror binary break case catch cd chan clock close concat continue coroutine dict encoding
    eof error eval exec exit expr fblocked fconfigure fcopy file fileevent flush for foreach format gets glob global
    history if incr info interp join lappend lassign lindex linsert list llength lmap load lrange lrepeat lreplace
    lreverse lsearch lset lsort memory namespace open package pid proc puts pwd read refchan regexp registry regsub
    rename return scan seek set socket source split string subst switch tailcall tell throw time trace transchan try
    unload unset update uplevel upvar variable vwait while yield yieldto zlib
"""
_WORDS = {
    "Verilog": frozenset(_VERILOG.split()),
    "SystemVerilog": frozenset(_SYSTEM_VERILOG.split()),
    "VHDL": frozenset(_VHDL.split()),
    "Tcl": frozenset(_TCL.split()),
}


def languages_of(name: str) -> tuple[str, ...]:
    """Return the hardware languages (and Tcl) in which ``name`` is a reserved word."""
    return tuple(
        language for language, words in _WORDS.items() if (name.lower() if language == "VHDL" else name) in words
    )


def hardware_name(name: str, role: str) -> str:
    """Return ``name`` unchanged; raise InvalidValueError if a language reserves it. It becomes a module, a port or a
    cell."""
    languages = languages_of(name)
    if languages:
        required = (
            f"a name that is not a reserved word of {' and '.join(languages)}, because it becomes a name in hardware"
        )
        raise InvalidValueError(role, name, required, remedy="choose another name")
    return name

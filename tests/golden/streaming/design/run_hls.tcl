# small as a streaming pipeline
# C++ -> IP for Ultra96-V2. Generated.
#
#   vitis_hls -f run_hls.tcl                          Vitis HLS 2022.1 to 2024.1; steps: csim synth export
#   vitis_hls -f run_hls.tcl -tclargs synth cosim     only these steps
#  vitis-run --mode hls --tcl run_hls.tcl            2024.2; it does not pass on arguments, so use:
#   SYSTOLIC_STEPS="synth cosim" vitis-run --mode hls --tcl run_hls.tcl
#
# Steps: csim    runs test_bench.cpp on the C++; prints PASS or the first word that differs
#       synth   C++ -> RTL; the report has the tool's estimates of cycles and resources
#       cosim   runs test_bench.cpp on the RTL (a whole frame of a large network takes days: use a small one)
#       export  the IP systolic:cnn:streaming_top:1.0, which build_vivado.tcl reads from hls/solution/impl/ip

set here [file dirname [file normalize [info script]]]
set known {csim synth cosim export}

proc wanted_steps {known} {
    if {[info exists ::env(SYSTOLIC_STEPS)]} {
        set words [split [string trim $::env(SYSTOLIC_STEPS)]]
    } else {
        set words [expr {[info exists ::argv] ? $::argv : {}}]
    }
    set steps {}
    foreach word $words {
        # Some versions keep their own arguments in argv: "-f run_hls.tcl -tclargs synth".
        if {$word eq "" || [string match "-*" $word] || [string match "*.tcl" $word]} { continue }
        if {$word ni $known} { error "a step is one of [join $known {, }], not '$word'" }
        lappend steps $word
    }
    return [expr {[llength $steps] ? $steps : {csim synth export}}]
}

proc run_steps {here steps} {
    # The data folder is an argument of the test bench, and the tool's makefiles split arguments at spaces.
    if {[regexp {\s} $here]} { error "Vitis HLS does not work in a path with spaces: move the folder out of '$here'" }
    cd $here

    # Synthesis starts with an empty project. The other steps continue with the project of an earlier run.
    if {"synth" in $steps} {
        open_project -reset hls
    } else {
        open_project hls
    }
    set_top {streaming_top}

    # SYSTOLIC_AP_INT: the C++ side of csim and cosim must use the same word types as the RTL.
    set flags "-std=c++14 -DSYSTOLIC_AP_INT -I$here/src"
    add_files -cflags $flags $here/src/top.cpp
    add_files -tb -cflags $flags $here/test_bench.cpp

    open_solution -flow_target vivado solution
    set_part {xczu3eg-sbva484-1-i}
    # 300 MHz is a target. By default, the tool reserves 27 % of it for routing (set_clock_uncertainty).
    create_clock -period 3.333333 -name clock
    # Buffers may be above 4 GB. The register map has two words per pointer.
    config_interface -m_axi_addr64=true

    if {"csim" in $steps} { csim_design -argv $here/data }
    if {"synth" in $steps} { csynth_design }
    if {"cosim" in $steps} { cosim_design -argv $here/data }
    if {"export" in $steps} {
        export_design -format ip_catalog -rtl verilog -vendor {systolic} -library {cnn} \
            -ipname {streaming_top} -version {1.0} -display_name {streaming_top}
    }
    close_project
}

# Without exit, the tool would stay in its shell. A makefile sees in the exit status whether a step failed.
if {[catch {run_steps $here [wanted_steps $known]} message]} {
    puts stderr "run_hls.tcl: $message"
    exit 1
}
exit 0

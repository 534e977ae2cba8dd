# small as a streaming pipeline
# IP -> bitstream for Ultra96-V2. Generated. Run run_hls.tcl first.
#
#   vivado -mode batch -source build_vivado.tcl                        all steps, up to the bitstream
#   vivado -mode batch -source build_vivado.tcl -tclargs design        stop at the validated block design
#   vivado -mode batch -source build_vivado.tcl -tclargs synth jobs=8  stop after synthesis, eight processes
#
# strategy=performance (default) optimises for the clock and tries 3 placements until one meets timing.
# strategy=default takes Vivado's own settings and one placement. It is faster, and needs fewer LUTs.
# floorplan=on gives each DSP cascade of the array a place on the die. The default is off.
# clock=MHZ builds the same design for a lower clock. If timing is not met, the script prints the clock to take, and the
# bitstream is in vivado/failed/.
#
# Vivado 2022.1 to 2024.2, of the same release as the Vitis HLS that exported the IP.
# It writes systolic.bit and systolic.hwh, from which pynq reads the registers' addresses.

set here [file dirname [file normalize [info script]]]
set name systolic
set accelerator streaming_top_0
set dma axi_dma_0
set ps zynq_ultra_ps_e_0

# The target clock in MHz, and the lower clocks that the PS can make.
set clocks {300 250 214.286 187.5 166.667 150 136.364 125 115.385 107.143 100}

# The directives of place_design that each strategy tries, in this order (UG904).
set placements {
    performance {ExtraTimingOpt EarlyBlockPlacement ExtraNetDelay_high}
    default {Default}
}

# Per port of the PS: its clock pin, and the masters that it serves. Each side of the DMA and each weight port has its
# own high-performance port if there are enough.
set ports {
    {S_AXI_HP0_FPD saxihp0_fpd_aclk {axi_dma_0/M_AXI_MM2S}}
    {S_AXI_HP1_FPD saxihp1_fpd_aclk {axi_dma_0/M_AXI_S2MM}}
}

# Direct register mode: the host writes an address and a length, and polls. A beat is as wide as the accelerator's.
set dma_config {
    CONFIG.c_include_sg 0
    CONFIG.c_sg_include_stscntrl_strm 0
    CONFIG.c_micro_dma 0
    CONFIG.c_sg_length_width 26
    CONFIG.c_addr_width 64
    CONFIG.c_include_mm2s 1
    CONFIG.c_include_mm2s_dre 0
    CONFIG.c_m_axi_mm2s_data_width 64
    CONFIG.c_mm2s_burst_size 64
    CONFIG.c_include_s2mm 1
    CONFIG.c_include_s2mm_dre 0
    CONFIG.c_m_axi_s2mm_data_width 64
    CONFIG.c_s2mm_burst_size 64
    CONFIG.c_m_axis_mm2s_tdata_width 64
}

# Settings in addition to the board's preset. A port that is enabled but has no clock fails validation, so that unused
# ports are disabled.
set ps_config {
    CONFIG.PSU__FPGA_PL0_ENABLE {1}
    CONFIG.PSU__USE__FABRIC__RST {1}
    CONFIG.PSU__USE__M_AXI_GP0 {1}
    CONFIG.PSU__USE__M_AXI_GP1 {0}
    CONFIG.PSU__USE__M_AXI_GP2 {0}
    CONFIG.PSU__USE__S_AXI_GP2 {1}
    CONFIG.PSU__SAXIGP2__DATA_WIDTH {128}
    CONFIG.PSU__USE__S_AXI_GP3 {1}
    CONFIG.PSU__SAXIGP3__DATA_WIDTH {128}
    CONFIG.PSU__USE__S_AXI_GP4 {0}
    CONFIG.PSU__USE__S_AXI_GP5 {0}
    CONFIG.PSU__USE__S_AXI_GP0 {0}
    CONFIG.PSU__USE__S_AXI_GP1 {0}
    CONFIG.PSU__CRL_APB__PL0_REF_CTRL__SRCSEL {IOPLL}
    CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ {300}
    CONFIG.PSU__USE__IRQ0 {0}
}

# Return the options of the command line as a dict: stop (the last step), jobs (processes), strategy, clock (MHz), floorplan, and
# rest (the arguments without the clock).
proc wanted {argv clocks strategies} {
    set options [dict create stop bitstream jobs 4 strategy performance floorplan off clock [lindex $clocks 0] rest {}]
    foreach word $argv {
        if {[regexp {^clock=(.*)$} $word -> mhz]} {
            if {$mhz ni $clocks} { error "the clock is one of [join $clocks {, }] MHz, not '$mhz'" }
            dict set options clock $mhz
            continue
        }
        dict lappend options rest $word
        if {$word in {design synth bitstream}} {
            dict set options stop $word
        } elseif {[regexp {^jobs=([1-9][0-9]?)$} $word -> jobs]} {
            dict set options jobs $jobs
        } elseif {[regexp {^strategy=(.*)$} $word -> strategy] && $strategy in $strategies} {
            dict set options strategy $strategy
        } elseif {[regexp {^floorplan=(on|off)$} $word -> floorplan]} {
            dict set options floorplan $floorplan
        } else {
            error "an argument is design, synth, bitstream, jobs=1 to jobs=99, strategy=[join $strategies { or strategy=}], floorplan=on or floorplan=off, or clock=MHZ, not '$word'"
        }
    }
    if {[dict get $options floorplan] eq "on"} { error "floorplan=on is not possible: only an engine in SystemVerilog has DSP chains with known names; Vitis HLS chooses its cascades itself" }
    return $options
}

# Return the newest installed version of the board's files.
proc newest_board_part {} {
    set board {avnet.com:ultra96v2:part0}
    set versions [get_board_parts -quiet $board:*]
    if {[llength $versions] == 0} {
        set installed {}
        foreach part [get_board_parts -quiet *] { lappend installed [join [lrange [split $part :] 0 1] :] }
        set installed [lsort -unique $installed]
        error "Vivado has no files of the board $board. It has files of: [expr {[llength $installed] ? [join $installed {, }] : "no board"}].\
            Install the board's files (Tools, Vivado Store)"
    }
    return [lindex [lsort -dictionary $versions] end]
}

proc open_design {here name} {
    set repository $here/hls/solution/impl/ip
    if {![file exists $repository/component.xml]} {
        error "there is no IP at $repository: run vitis_hls -f run_hls.tcl first"
    }
    set board_part [newest_board_part]
    puts "board files: $board_part"
    create_project -force $name $here/vivado -part {xczu3eg-sbva484-1-i}
    set_property board_part $board_part [current_project]
    set part [get_property PART [current_project]]
    if {$part ne {xczu3eg-sbva484-1-i}} { puts "WARNING: the board files name the part $part; the design's figures are for xczu3eg-sbva484-1-i" }
    set_property ip_repo_paths $repository [current_project]
    update_ip_catalog
    create_bd_design system
}

# Add the PS with the board's preset (DDR, clocks, pins), and then with the settings of this design.
proc add_ps {ps config} {
    create_bd_cell -type ip -vlnv {xilinx.com:ip:zynq_ultra_ps_e} $ps
    apply_bd_automation -rule xilinx.com:bd_rule:zynq_ultra_ps_e -config {apply_board_preset {1}} [get_bd_cells $ps]
    set_property -dict $config [get_bd_cells $ps]
}

# The PS divides a PLL by integers, and rounds a clock that it cannot make. The design would then run at another clock.
proc check_clock {ps wanted_mhz} {
    set made [expr {[get_property CONFIG.FREQ_HZ [get_bd_pins $ps/pl_clk0]] / 1.0e6}]
    if {abs($made - $wanted_mhz) > 0.001 * $wanted_mhz} {
        error "the PS makes $made MHz, not $wanted_mhz MHz: generate the design for a clock that it can make"
    }
    puts "PL clock: $made MHz"
}

# One clock for everything: no path to a port crosses clocks.
proc add_clock_and_reset {ps} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset reset_0
    connect_bd_net [get_bd_pins $ps/pl_clk0] [get_bd_pins reset_0/slowest_sync_clk]
    connect_bd_net [get_bd_pins $ps/pl_resetn0] [get_bd_pins reset_0/ext_reset_in]
}

proc clock_pin {ps pin} {
    connect_bd_net [get_bd_pins $ps/pl_clk0] [get_bd_pins $pin]
}

proc reset_pin {pin} {
    connect_bd_net [get_bd_pins reset_0/peripheral_aresetn] [get_bd_pins $pin]
}

proc add_interconnect {ps cell slaves masters} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect $cell
    set_property -dict [list CONFIG.NUM_SI $slaves CONFIG.NUM_MI $masters CONFIG.NUM_CLKS 1] [get_bd_cells $cell]
    clock_pin $ps $cell/aclk
    reset_pin $cell/aresetn
}

proc connect {from to} {
    connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $to]
}

proc add_accelerator {ps accelerator} {
    create_bd_cell -type ip -vlnv {systolic:cnn:streaming_top:1.0} $accelerator
    clock_pin $ps $accelerator/ap_clk
    reset_pin $accelerator/ap_rst_n
}

# Vitis HLS appends _r to names that a hardware language reserves, such as in and out in VHDL.
proc stream_pin {accelerator name} {
    foreach pin [list $accelerator/${name}_r $accelerator/$name] {
        if {[llength [get_bd_intf_pins -quiet $pin]] == 1} { return $pin }
    }
    error "the IP has no stream '$name': run vitis_hls -f run_hls.tcl again, this folder's"
}

# Add the DMA. A frame is one input packet and one output packet.
proc add_dma {ps accelerator dma config} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:axi_dma $dma
    set_property -dict $config [get_bd_cells $dma]
    foreach pin {s_axi_lite_aclk m_axi_mm2s_aclk m_axi_s2mm_aclk} { clock_pin $ps $dma/$pin }
    reset_pin $dma/axi_resetn
    connect $dma/M_AXIS_MM2S [stream_pin $accelerator in]
    connect [stream_pin $accelerator out] $dma/S_AXIS_S2MM
}

# Add an interconnect per port, even for a single master: it converts width, protocol and ID width.
proc add_memory_ports {ps ports} {
    foreach entry $ports {
        lassign $entry port clock masters
        set cell memory_[string tolower $port]
        add_interconnect $ps $cell [llength $masters] 1
        set slave 0
        foreach master $masters {
            connect $master $cell/[format S%02d_AXI $slave]
            incr slave
        }
        connect $cell/M00_AXI $ps/$port
        clock_pin $ps $ps/$clock
    }
}

# Connect the registers of the accelerator and of the DMA.
proc add_control {ps accelerator dma} {
    add_interconnect $ps control 1 2
    connect $ps/M_AXI_HPM0_FPD control/S00_AXI
    connect control/M00_AXI $accelerator/s_axi_control
    connect control/M01_AXI $dma/S_AXI_LITE
    clock_pin $ps $ps/maxihpm0_fpd_aclk
}

# Return the address segment of a slave. Vitis HLS names it Reg, and Vivado's packager may name it reg0.
proc slave_segment {slave} {
    set segments [get_bd_addr_segs -of_objects [get_bd_intf_pins $slave]]
    if {[llength $segments] != 1} { error "$slave must have one address segment, it has [llength $segments]" }
    return $segments
}

# Assign fixed addresses to the registers. Through a memory port, a master reaches only DDR.
proc assign_addresses {ps accelerator dma ports} {
    set cpu [get_bd_addr_spaces $ps/Data]
    assign_bd_address -offset 0xA0000000 -range 0x10000 -target_address_space $cpu [slave_segment $accelerator/s_axi_control] -force
    assign_bd_address -offset 0xA0010000 -range 0x10000 -target_address_space $cpu [get_bd_addr_segs $dma/S_AXI_LITE/Reg] -force
    foreach entry $ports {
        foreach master [lindex $entry 2] {
            set assigned 0
            foreach segment [get_bd_addr_segs -addressables -of_objects [get_bd_intf_pins $master]] {
                set space [get_bd_addr_spaces -of_objects [get_bd_intf_pins $master]]
                if {[string match "*_DDR_*" $segment]} {
                    assign_bd_address -target_address_space $space $segment -force
                    incr assigned
                } else {
                    exclude_bd_addr_seg -target_address_space $space $segment
                }
            }
            if {$assigned == 0} { error "no DDR is reachable from $master" }
        }
    }
}

proc finish_design {strategy} {
    validate_bd_design
    save_bd_design
    set file [get_files system.bd]
    # The settings of synth_1 apply to the IPs only if these are synthesised with the top, not each on its own (UG994).
    if {$strategy eq "performance"} { set_property SYNTH_CHECKPOINT_MODE None $file }
    generate_target all $file
    add_files -norecurse [make_wrapper -files $file -top]
    set_property top system_wrapper [current_fileset]
    update_compile_order -fileset sources_1
}

proc set_synthesis {strategy} {
    if {$strategy ne "performance"} { return }
    set run [get_runs synth_1]
    foreach {property value} {
        strategy Flow_PerfOptimized_high
        STEPS.SYNTH_DESIGN.ARGS.DIRECTIVE AlternateRoutability
        STEPS.SYNTH_DESIGN.ARGS.RETIMING true
    } { set_property $property $value $run }
}

# Set the directives of an implementation. The strategy comes first, because it overwrites all others.
proc set_implementation {run strategy placement} {
    if {$strategy eq "performance"} {
        foreach {property value} {
            strategy Performance_ExtraTimingOpt
            STEPS.OPT_DESIGN.ARGS.DIRECTIVE Explore
            STEPS.PHYS_OPT_DESIGN.IS_ENABLED true
            STEPS.PHYS_OPT_DESIGN.ARGS.DIRECTIVE AggressiveExplore
            STEPS.POST_ROUTE_PHYS_OPT_DESIGN.IS_ENABLED true
            STEPS.POST_ROUTE_PHYS_OPT_DESIGN.ARGS.DIRECTIVE AggressiveExplore
        } { set_property $property $value $run }
    }
    set_property STEPS.PLACE_DESIGN.ARGS.DIRECTIVE $placement $run
}

# Run a step to its end. Return "", or a sentence with the reason why it failed.
proc run_to_end {run args} {
    launch_runs $run {*}$args
    wait_on_run $run
    if {[get_property PROGRESS [get_runs $run]] eq "100%"} { return "" }
    return "$run failed: [get_property STATUS [get_runs $run]]; its log is in vivado/"
}

# Return the slacks of a run in ns by their names. The pulse width is the sum of all that are missed, 0 if none is.
proc slacks {run} {
    foreach {name property} {setup STATS.WNS hold STATS.WHS pulse STATS.TPWS} {
        dict set slacks $name [get_property $property [get_runs $run]]
    }
    return $slacks
}

proc met {slacks} {
    foreach slack [dict values $slacks] { if {$slack < 0} { return 0 } }
    return 1
}

# Implement the design with one placement after the other until timing is met. Return the run that meets timing, or else
# the one with the best setup slack, and its slacks. A run that misses hold comes last, because no clock corrects that.
proc implement {options placements} {
    set best {}
    set best_setup -Inf
    set number 0
    foreach placement $placements {
        set run impl_[incr number]
        if {$number > 1} { create_run $run -parent_run synth_1 -flow [get_property FLOW [get_runs impl_1]] }
        set_implementation [get_runs $run] [dict get $options strategy] $placement
        set failure [run_to_end $run -to_step write_bitstream -jobs [dict get $options jobs]]
        if {$failure ne ""} {
            puts "placement $placement: $failure"
            continue
        }
        set slacks [slacks $run]
        puts "placement $placement: worst setup slack: [dict get $slacks setup] ns, worst hold slack: [dict get $slacks hold] ns"
        if {[met $slacks]} { return [list $run $slacks] }
        set setup [expr {[dict get $slacks setup] - ([dict get $slacks hold] < 0 ? 1000 : 0)}]
        if {$setup > $best_setup} {
            set best [list $run $slacks]
            set best_setup $setup
        }
    }
    if {$best eq {}} { error $failure }
    return $best
}

# Print the highest frequency of each clock, and return the highest frequency of the PS's clock in MHz. A path that has r ns
# and a slack of s ns needs r - s ns. All clocks are made from the PS's clock, so that they change by one factor.
proc highest_mhz {mhz} {
    set factor Inf
    foreach clock [get_clocks] {
        set path [get_timing_paths -quiet -delay_type max -max_paths 1 -to $clock]
        if {[llength $path] == 0} { continue }
        set requirement [get_property REQUIREMENT $path]
        set slack [get_property SLACK $path]
        if {![string is double -strict $requirement] || ![string is double -strict $slack]} { continue }
        set reached [expr {$requirement / ($requirement - $slack)}]
        puts [format "clock %s: %.1f MHz wanted, %.1f MHz at most" $clock [expr {1000.0 / [get_property PERIOD $clock]}] \
            [expr {1000.0 / [get_property PERIOD $clock] * $reached}]]
        set factor [expr {min($factor, $reached)}]
    }
    return [expr {$mhz * $factor}]
}

# A design that misses timing may fail at some temperature or voltage. Its files are not copied next to the manifest, where
# systolic package would find them, but to vivado/failed/. The error names the clock to build for.
proc fail {here name run slacks options clocks} {
    copy_results $here $name $run $here/vivado/failed
    file copy -force $here/vivado/timing.rpt $here/vivado/failed
    set mhz [dict get $options clock]
    set highest [highest_mhz $mhz]
    set text "timing is not met: worst setup slack [dict get $slacks setup] ns, worst hold slack [dict get $slacks hold] ns.\
        The files are in vivado/failed/, for a look only."
    if {[dict get $slacks hold] < 0} { append text " No clock corrects a hold slack: build with another strategy=." }
    if {[dict get $slacks pulse] < 0} { append text " A clock is above the limit of a block: see Pulse Width Checks in vivado/failed/timing.rpt." }
    if {[dict get $slacks setup] >= 0} { error $text }
    append text [format " The highest clock is %.1f MHz." $highest]
    foreach lower $clocks {
        if {$lower >= $mhz || $lower > $highest} { continue }
        append text " To build this design for $lower MHz:\n\
            vivado -mode batch -source build_vivado.tcl -tclargs [concat [dict get $options rest] clock=$lower]\n\
            For figures at this clock, run systolic generate with the same arguments and --clock $lower."
        error $text
    }
    error "$text That is below [lindex $clocks end] MHz: generate another folding."
}

proc copy_results {here name run folder} {
    file mkdir $folder
    foreach {suffix pattern} [list \
            bit $here/vivado/$name.runs/$run/system_wrapper.bit \
            hwh $here/vivado/$name.gen/sources_1/bd/system/hw_handoff/system.hwh] {
        set files [glob -nocomplain $pattern]
        if {[llength $files] != 1} { error "Vivado has not written $pattern" }
        file copy -force [lindex $files 0] $folder/$name.$suffix
        puts "wrote $folder/$name.$suffix"
    }
}

proc build {here name ps accelerator dma ports config dma_config clocks placements argv} {
    set options [wanted $argv $clocks [dict keys $placements]]
    set stop [dict get $options stop]
    # If this run fails, the files of an earlier run must not be mistaken for its result.
    file delete -force $here/vivado/failed
    if {$stop eq "bitstream"} { file delete $here/$name.bit }
    open_design $here $name
    add_ps $ps [dict replace $config CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ [dict get $options clock]]
    check_clock $ps [dict get $options clock]
    add_clock_and_reset $ps
    add_accelerator $ps $accelerator
    add_dma $ps $accelerator $dma $dma_config
    add_memory_ports $ps $ports
    add_control $ps $accelerator $dma
    assign_addresses $ps $accelerator $dma $ports
    finish_design [dict get $options strategy]
    if {$stop eq "design"} { return }
    set_synthesis [dict get $options strategy]
    set failure [run_to_end synth_1 -jobs [dict get $options jobs]]
    if {$failure ne ""} { error $failure }
    if {$stop eq "synth"} { return }
    lassign [implement $options [dict get $placements [dict get $options strategy]]] run slacks
    open_run $run
    report_utilization -file $here/vivado/utilization.rpt
    report_utilization -hierarchical -file $here/vivado/utilization_hierarchical.rpt
    report_timing_summary -file $here/vivado/timing.rpt
    if {![met $slacks]} { fail $here $name $run $slacks $options $clocks }
    copy_results $here $name $run $here
}

if {[catch {build $here $name $ps $accelerator $dma $ports $ps_config $dma_config $clocks $placements $argv} message]} {
    puts stderr "build_vivado.tcl: $message"
    exit 1
}
exit 0

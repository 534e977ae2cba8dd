# tiny on a 6×8×8 systolic array
# IP -> bitstream for PYNQ-Z2. Generated. Run run_hls.tcl first.
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
set accelerator systolic_top_0
set interrupts axi_intc_0
set ps processing_system7_0

# The target clock in MHz, and the lower clocks that the PS can make.
set clocks {100 90.909 83.333 76.923 71.429 66.667 62.5 58.824 55.556 52.632 50 47.619 45.455 43.478 41.667 40 38.462 37.037 35.714 34.483 33.333}

# The directives of place_design that each strategy tries, in this order (UG904).
set placements {
    performance {ExtraTimingOpt EarlyBlockPlacement ExtraNetDelay_high}
    default {Default}
}

# Per port of the PS: its clock pin, and the accelerator's masters that it serves. Maps and weights each have their own
# high-performance port if there are enough. program and layers transfer few bytes and share a remaining port.
set ports {
    {S_AXI_HP0 S_AXI_HP0_ACLK {m_axi_maps_0 m_axi_layers}}
    {S_AXI_HP1 S_AXI_HP1_ACLK {m_axi_maps_1}}
    {S_AXI_HP2 S_AXI_HP2_ACLK {m_axi_weights_0}}
    {S_AXI_HP3 S_AXI_HP3_ACLK {m_axi_program}}
}

# Settings in addition to the board's preset. A port that is enabled but has no clock fails validation, so that unused
# ports are disabled.
set ps_config {
    CONFIG.PCW_EN_CLK0_PORT {1}
    CONFIG.PCW_EN_RST0_PORT {1}
    CONFIG.PCW_IRQ_F2P_INTR {1}
    CONFIG.PCW_USE_M_AXI_GP0 {1}
    CONFIG.PCW_USE_M_AXI_GP1 {0}
    CONFIG.PCW_USE_S_AXI_HP0 {1}
    CONFIG.PCW_S_AXI_HP0_DATA_WIDTH {64}
    CONFIG.PCW_USE_S_AXI_HP1 {1}
    CONFIG.PCW_S_AXI_HP1_DATA_WIDTH {64}
    CONFIG.PCW_USE_S_AXI_HP2 {1}
    CONFIG.PCW_S_AXI_HP2_DATA_WIDTH {64}
    CONFIG.PCW_USE_S_AXI_HP3 {1}
    CONFIG.PCW_S_AXI_HP3_DATA_WIDTH {64}
    CONFIG.PCW_FCLK0_PERIPHERAL_CLKSRC {IO PLL}
    CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ {100}
    CONFIG.PCW_USE_FABRIC_INTERRUPT {1}
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
    set board {tul.com.tw:pynq-z2:part0}
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
    create_project -force $name $here/vivado -part {xc7z020clg400-1}
    set_property board_part $board_part [current_project]
    set part [get_property PART [current_project]]
    if {$part ne {xc7z020clg400-1}} { puts "WARNING: the board files name the part $part; the design's figures are for xc7z020clg400-1" }
    set_property ip_repo_paths $repository [current_project]
    update_ip_catalog
    create_bd_design system
}

# Add the PS with the board's preset (DDR, clocks, pins), and then with the settings of this design.
proc add_ps {ps config} {
    create_bd_cell -type ip -vlnv {xilinx.com:ip:processing_system7} $ps
    apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 -config {make_external {FIXED_IO, DDR} apply_board_preset {1} Master {Disable} Slave {Disable}} [get_bd_cells $ps]
    set_property -dict $config [get_bd_cells $ps]
}

# The PS divides a PLL by integers, and rounds a clock that it cannot make. The design would then run at another clock.
proc check_clock {ps wanted_mhz} {
    set made [expr {[get_property CONFIG.FREQ_HZ [get_bd_pins $ps/FCLK_CLK0]] / 1.0e6}]
    if {abs($made - $wanted_mhz) > 0.001 * $wanted_mhz} {
        error "the PS makes $made MHz, not $wanted_mhz MHz: generate the design for a clock that it can make"
    }
    puts "PL clock: $made MHz"
}

# One clock for everything: no path to a port crosses clocks.
proc add_clock_and_reset {ps} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset reset_0
    connect_bd_net [get_bd_pins $ps/FCLK_CLK0] [get_bd_pins reset_0/slowest_sync_clk]
    connect_bd_net [get_bd_pins $ps/FCLK_RESET0_N] [get_bd_pins reset_0/ext_reset_in]
}

proc clock_pin {ps pin} {
    connect_bd_net [get_bd_pins $ps/FCLK_CLK0] [get_bd_pins $pin]
}

proc reset_pin {pin} {
    connect_bd_net [get_bd_pins reset_0/peripheral_aresetn] [get_bd_pins $pin]
}

# Add an AXI Interconnect. On a Zynq-7000 it takes no logic where nothing is converted, and meets timing more easily than a
# SmartConnect (analogdevicesinc/hdl, pull requests 772 and 1054).
proc add_interconnect {ps cell slaves masters} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:axi_interconnect $cell
    set_property -dict [list CONFIG.NUM_SI $slaves CONFIG.NUM_MI $masters] [get_bd_cells $cell]
    clock_pin $ps $cell/ACLK
    reset_pin $cell/ARESETN
    foreach {side count} [list S $slaves M $masters] {
        for {set n 0} {$n < $count} {incr n} {
            set port $cell/[format %s%02d $side $n]
            clock_pin $ps ${port}_ACLK
            reset_pin ${port}_ARESETN
        }
    }
}

proc connect {from to} {
    connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $to]
}

proc add_accelerator {ps accelerator} {
    create_bd_cell -type ip -vlnv {systolic:cnn:systolic_top:1.0} $accelerator
    clock_pin $ps $accelerator/ap_clk
    reset_pin $accelerator/ap_rst_n
}

# Add an interconnect per port, even for a single master: it converts width, protocol and ID width.
proc add_memory_ports {ps accelerator ports} {
    foreach entry $ports {
        lassign $entry port clock masters
        set cell memory_[string tolower $port]
        add_interconnect $ps $cell [llength $masters] 1
        set slave 0
        foreach master $masters {
            connect $accelerator/$master $cell/[format S%02d_AXI $slave]
            incr slave
        }
        connect $cell/M00_AXI $ps/$port
        clock_pin $ps $ps/$clock
    }
}

# Connect the registers of the accelerator and of the interrupt controller, which pynq requires for every interrupt.
proc add_control {ps accelerator interrupts} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:axi_intc $interrupts
    # One wire, not a bus: the PS reads the level.
    set_property -dict [list CONFIG.C_IRQ_CONNECTION 1] [get_bd_cells $interrupts]
    clock_pin $ps $interrupts/s_axi_aclk
    reset_pin $interrupts/s_axi_aresetn
    add_interconnect $ps control 1 2
    connect $ps/M_AXI_GP0 control/S00_AXI
    connect control/M00_AXI $accelerator/s_axi_control
    connect control/M01_AXI $interrupts/s_axi
    clock_pin $ps $ps/M_AXI_GP0_ACLK
    connect_bd_net [get_bd_pins $accelerator/interrupt] [get_bd_pins $interrupts/intr]
    connect_bd_net [get_bd_pins $interrupts/irq] [get_bd_pins $ps/IRQ_F2P]
}

# Return the address segment of a slave. Vitis HLS names it Reg, and Vivado's packager may name it reg0.
proc slave_segment {slave} {
    set segments [get_bd_addr_segs -of_objects [get_bd_intf_pins $slave]]
    if {[llength $segments] != 1} { error "$slave must have one address segment, it has [llength $segments]" }
    return $segments
}

# Assign fixed addresses to the registers. Through a memory port, a master reaches only DDR.
proc assign_addresses {ps accelerator interrupts ports} {
    set cpu [get_bd_addr_spaces $ps/Data]
    assign_bd_address -offset 0x40000000 -range 0x10000 -target_address_space $cpu [slave_segment $accelerator/s_axi_control] -force
    assign_bd_address -offset 0x40010000 -range 0x10000 -target_address_space $cpu [get_bd_addr_segs $interrupts/S_AXI/Reg] -force
    foreach entry $ports {
        foreach master [lindex $entry 2] {
            set assigned 0
            foreach segment [get_bd_addr_segs -addressables -of_objects [get_bd_intf_pins $accelerator/$master]] {
                set space [get_bd_addr_spaces -of_objects [get_bd_intf_pins $accelerator/$master]]
                if {[string match "*_DDR_*" $segment]} {
                    assign_bd_address -target_address_space $space $segment -force
                    incr assigned
                } else {
                    exclude_bd_addr_seg -target_address_space $space $segment
                }
            }
            if {$assigned == 0} { error "no DDR is reachable from $accelerator/$master" }
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
    error "$text That is below [lindex $clocks end] MHz: generate a smaller array."
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

proc build {here name ps accelerator interrupts ports config clocks placements argv} {
    set options [wanted $argv $clocks [dict keys $placements]]
    set stop [dict get $options stop]
    # If this run fails, the files of an earlier run must not be mistaken for its result.
    file delete -force $here/vivado/failed
    if {$stop eq "bitstream"} { file delete $here/$name.bit }
    open_design $here $name
    add_ps $ps [dict replace $config CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ [dict get $options clock]]
    check_clock $ps [dict get $options clock]
    add_clock_and_reset $ps
    add_accelerator $ps $accelerator
    add_memory_ports $ps $accelerator $ports
    add_control $ps $accelerator $interrupts
    assign_addresses $ps $accelerator $interrupts $ports
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

if {[catch {build $here $name $ps $accelerator $interrupts $ports $ps_config $clocks $placements $argv} message]} {
    puts stderr "build_vivado.tcl: $message"
    exit 1
}
exit 0

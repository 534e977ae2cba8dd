# tiny on a 6×8×8 systolic array
# IP -> bitstream for PYNQ-Z2. Generated. Run run_hls.tcl first.
#
#   vivado -mode batch -source build_vivado.tcl                        all steps, up to the bitstream
#   vivado -mode batch -source build_vivado.tcl -tclargs design        stop at the validated block design
#   vivado -mode batch -source build_vivado.tcl -tclargs synth jobs=8  stop after synthesis, eight processes
#
# Vivado 2022.1 to 2024.2, of the same release as the Vitis HLS that exported the IP.
# It writes systolic.bit and systolic.hwh, from which pynq reads the registers' addresses.

set here [file dirname [file normalize [info script]]]
set name systolic
set accelerator systolic_top_0
set interrupts axi_intc_0
set ps processing_system7_0
set wanted_mhz 100

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

# Return the step to stop after and the number of processes, from the command line.
proc wanted {argv} {
    set stop bitstream
    set jobs 4
    foreach word $argv {
        if {$word in {design synth bitstream}} {
            set stop $word
        } elseif {[regexp {^jobs=([1-9][0-9]?)$} $word -> jobs]} {
            continue
        } else {
            error "an argument is design, synth, bitstream or jobs=1 to jobs=99, not '$word'"
        }
    }
    return [list $stop $jobs]
}

proc open_design {here name} {
    set repository $here/hls/solution/impl/ip
    if {![file exists $repository/component.xml]} {
        error "there is no IP at $repository: run vitis_hls -f run_hls.tcl first"
    }
    if {[llength [get_board_parts -quiet {tul.com.tw:pynq-z2:part0:1.0}]] == 0} {
        error "Vivado does not know the board {tul.com.tw:pynq-z2:part0:1.0}: install its board files (Tools, Vivado Store)"
    }
    create_project -force $name $here/vivado -part {xc7z020clg400-1}
    set_property board_part {tul.com.tw:pynq-z2:part0:1.0} [current_project]
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

proc add_smartconnect {ps cell slaves masters} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect $cell
    set_property -dict [list CONFIG.NUM_SI $slaves CONFIG.NUM_MI $masters CONFIG.NUM_CLKS 1] [get_bd_cells $cell]
    clock_pin $ps $cell/aclk
    reset_pin $cell/aresetn
}

proc connect {from to} {
    connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $to]
}

proc add_accelerator {ps accelerator} {
    create_bd_cell -type ip -vlnv {systolic:cnn:systolic_top:1.0} $accelerator
    clock_pin $ps $accelerator/ap_clk
    reset_pin $accelerator/ap_rst_n
}

# Add a SmartConnect per port, even for a single master: it converts width, protocol and ID width.
proc add_memory_ports {ps accelerator ports} {
    foreach entry $ports {
        lassign $entry port clock masters
        set cell memory_[string tolower $port]
        add_smartconnect $ps $cell [llength $masters] 1
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
    add_smartconnect $ps control 1 2
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

proc finish_design {name} {
    validate_bd_design
    save_bd_design
    set file [get_files system.bd]
    generate_target all $file
    add_files -norecurse [make_wrapper -files $file -top]
    set_property top system_wrapper [current_fileset]
    update_compile_order -fileset sources_1
}

proc run_to_end {run} {
    wait_on_run $run
    if {[get_property PROGRESS [get_runs $run]] ne "100%"} {
        error "$run failed: [get_property STATUS [get_runs $run]]; its log is in vivado/"
    }
}

# A design that misses timing may fail at some temperature or voltage, so that its files are not copied.
proc check_timing {run} {
    foreach {check property} {setup STATS.WNS hold STATS.WHS} {
        set slack [get_property $property [get_runs $run]]
        puts "worst $check slack: $slack ns"
        if {$slack < 0} { error "timing is not met: worst $check slack $slack ns. Take a lower clock, or another array" }
    }
}

proc copy_results {here name} {
    foreach {suffix pattern} [list \
            bit $here/vivado/$name.runs/impl_1/system_wrapper.bit \
            hwh $here/vivado/$name.gen/sources_1/bd/system/hw_handoff/system.hwh] {
        set files [glob -nocomplain $pattern]
        if {[llength $files] != 1} { error "Vivado has not written $pattern" }
        file copy -force [lindex $files 0] $here/$name.$suffix
        puts "wrote $here/$name.$suffix"
    }
}

proc build {here name ps accelerator interrupts ports config wanted_mhz argv} {
    lassign [wanted $argv] stop jobs
    open_design $here $name
    add_ps $ps $config
    check_clock $ps $wanted_mhz
    add_clock_and_reset $ps
    add_accelerator $ps $accelerator
    add_memory_ports $ps $accelerator $ports
    add_control $ps $accelerator $interrupts
    assign_addresses $ps $accelerator $interrupts $ports
    finish_design $name
    if {$stop eq "design"} { return }
    launch_runs synth_1 -jobs $jobs
    run_to_end synth_1
    if {$stop eq "synth"} { return }
    launch_runs impl_1 -to_step write_bitstream -jobs $jobs
    run_to_end impl_1
    open_run impl_1
    report_utilization -file $here/vivado/utilization.rpt
    report_utilization -hierarchical -file $here/vivado/utilization_hierarchical.rpt
    report_timing_summary -file $here/vivado/timing.rpt
    check_timing impl_1
    copy_results $here $name
}

if {[catch {build $here $name $ps $accelerator $interrupts $ports $ps_config $wanted_mhz $argv} message]} {
    puts stderr "build_vivado.tcl: $message"
    exit 1
}
exit 0

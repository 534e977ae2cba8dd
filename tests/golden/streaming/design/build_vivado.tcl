# small as a streaming pipeline
# IP -> bitstream for Ultra96-V2. Generated. Run run_hls.tcl first.
#
#   vivado -mode batch -source build_vivado.tcl                        all steps, up to the bitstream
#   vivado -mode batch -source build_vivado.tcl -tclargs design        stop at the validated block design
#   vivado -mode batch -source build_vivado.tcl -tclargs synth jobs=8  stop after synthesis, eight processes
#
# Vivado 2022.1 to 2024.2, of the same release as the Vitis HLS that exported the IP.
# It writes systolic.bit and systolic.hwh, from which pynq reads the registers' addresses.

set here [file dirname [file normalize [info script]]]
set name systolic
set accelerator streaming_top_0
set dma axi_dma_0
set ps zynq_ultra_ps_e_0
set wanted_mhz 300

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
    if {[llength [get_board_parts -quiet {avnet.com:ultra96v2:part0:1.2}]] == 0} {
        error "Vivado does not know the board {avnet.com:ultra96v2:part0:1.2}: install its board files (Tools, Vivado Store)"
    }
    create_project -force $name $here/vivado -part {xczu3eg-sbva484-1-i}
    set_property board_part {avnet.com:ultra96v2:part0:1.2} [current_project]
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

# Add a SmartConnect per port, even for a single master: it converts width, protocol and ID width.
proc add_memory_ports {ps ports} {
    foreach entry $ports {
        lassign $entry port clock masters
        set cell memory_[string tolower $port]
        add_smartconnect $ps $cell [llength $masters] 1
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
    add_smartconnect $ps control 1 2
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
        if {$slack < 0} { error "timing is not met: worst $check slack $slack ns. Take a lower clock, or another folding" }
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

proc build {here name ps accelerator dma ports config dma_config wanted_mhz argv} {
    lassign [wanted $argv] stop jobs
    open_design $here $name
    add_ps $ps $config
    check_clock $ps $wanted_mhz
    add_clock_and_reset $ps
    add_accelerator $ps $accelerator
    add_dma $ps $accelerator $dma $dma_config
    add_memory_ports $ps $ports
    add_control $ps $accelerator $dma
    assign_addresses $ps $accelerator $dma $ports
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

if {[catch {build $here $name $ps $accelerator $dma $ports $ps_config $dma_config $wanted_mhz $argv} message]} {
    puts stderr "build_vivado.tcl: $message"
    exit 1
}
exit 0

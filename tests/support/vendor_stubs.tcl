# A stub of Vitis HLS and Vivado with exactly the commands that the generated scripts use, so that a misspelt one is an
# error. Each call is recorded as one line of CALLS, with \x1f between its words.
#
#   tclsh vendor_stubs.tcl CALLS SCRIPT ARGUMENT ...
#
# STUB_HZ: the clock that the PS sets; by default the one that the script asks for. STUB_FAIL: a command that fails.
# STUB_LOGS: a log of Vivado per implementation, which gives its result. STUB_TPWS: total pulse width slack in ns.
# STUB_PATHS: per clock its name, period, and the requirement and slack of its worst path in ns.
# STUB_SEGMENT: the name of a slave's address segment. STUB_FAST_HZ: the MMCM's output for twice the clock.
# STUB_NO_SPACES: the packager infers no address spaces. STUB_STREAMS: the names of the accelerator's streams.
# STUB_BOARDS: the installed board files. STUB_PART: the part that they name. STUB_PROGRESS: the progress of synthesis.

set calls_file [lindex $argv 0]
set script [lindex $argv 1]
set argv [lrange $argv 2 end]
set cells {}
set wires {}
set added {}
set pblocks {}

proc setting {name default} { return [expr {[info exists ::env($name)] ? $::env($name) : $default}] }

proc record {words} {
    set file [open $::calls_file a]
    puts $file [string map {\n " "} [join $words "\x1f"]]
    close $file
    if {[lindex $words 0] eq [setting STUB_FAIL ""]} { error "[lindex $words 0] failed" }
}

# Commands that return nothing.
foreach name {
    open_project set_top open_solution set_part create_clock config_interface csim_design csynth_design cosim_design
    export_design close_project
    update_ip_catalog create_bd_design apply_bd_automation connect_bd_net assign_bd_address
    exclude_bd_addr_seg validate_bd_design save_bd_design generate_target update_compile_order wait_on_run
    report_utilization
    ipx::associate_bus_interfaces ipx::create_xgui_files ipx::update_checksums ipx::check_integrity ipx::save_core
} {
    if {[string match ipx::* $name]} { namespace eval ::ipx {} }
    proc ::$name args "record \[linsert \$args 0 $name\]"
}

proc add_files args {
    record [linsert $args 0 add_files]
    lappend ::added [lindex $args end]
}

# Queries that return the object of that name.
foreach name {get_runs get_files get_bd_addr_spaces} { proc $name args { return [lindex $args end] } }
proc current_project {} { return project }
proc current_fileset {} { return sources_1 }
proc make_wrapper args { return system_wrapper.v }

proc set_property args {
    record [linsert $args 0 set_property]
    if {[regexp {CONFIG\.(?:PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ|PCW_FPGA0_PERIPHERAL_FREQMHZ) \{?([0-9.]+)} $args -> mhz]} {
        set ::made_hz [expr {round(1e6 * $mhz)}]
    }
}

# By default one version of every board's files is installed.
proc get_board_parts {-quiet pattern} {
    return [lsearch -all -inline [setting STUB_BOARDS [string map {* 1.0} $pattern]] $pattern]
}

proc create_bd_cell args {
    record [linsert $args 0 create_bd_cell]
    lappend ::cells [lindex $args end]
}

proc existing {cell} {
    if {$cell ni $::cells} { error "there is no cell '$cell'" }
}

proc get_bd_cells {cell} { existing $cell; return $cell }
proc get_bd_pins {pin} { existing [file dirname $pin]; return $pin }

# With -quiet, the query of a missing pin returns an empty list. The accelerator has the streams of STUB_STREAMS.
proc get_bd_intf_pins args {
    set pin [lindex $args end]
    existing [file dirname $pin]
    if {[lindex $args 0] eq "-quiet" && [file tail $pin] ni [setting STUB_STREAMS {in_r out_r}]} { return {} }
    return $pin
}

proc connect_bd_intf_net {from to} {
    record [list connect_bd_intf_net $from $to]
    foreach pin [list $from $to] { if {$pin in [concat {*}$::wires]} { error "$pin is connected already" } }
    lappend ::wires [list $from $to]
}

proc other_end {pin} {
    foreach wire $::wires { if {[lindex $wire 0] eq $pin} { return [lindex $wire 1] } }
    return ""
}

# A master reaches the segments of the PS port that it is connected to.
proc get_bd_addr_segs args {
    if {[lindex $args 0] eq "-of_objects"} { return [lindex $args end]/[setting STUB_SEGMENT Reg] }
    if {[lindex $args 0] ne "-addressables"} { return [lindex $args end] }
    set switch [file dirname [other_end [lindex $args end]]]
    set port [other_end $switch/M00_AXI]
    if {$port eq ""} { return {} }
    if {[string match processing_system7* $port]} { return [list /$port/HP0_DDR_LOWOCM] }
    return [list /$port/HP0_DDR_LOW /$port/HP0_DDR_HIGH /$port/HP0_LPS_OCM /$port/HP0_QSPI]
}

proc get_property {name object} {
    set hz [setting STUB_HZ [expr {[info exists ::made_hz] ? $::made_hz : 300000000}]]
    switch -- $name {
        CONFIG.FREQ_HZ {
            return [expr {[string match */clk_out2 $object] ? [setting STUB_FAST_HZ [expr {2 * $hz}]] : $hz}]
        }
        NAME { return $object }
        PART { return [setting STUB_PART $::project_part] }
        FLOW { return {Vivado Implementation 2023} }
        PROGRESS { return [lindex [result $object] 0] }
        STATUS { return [lindex [result $object] 1] }
        STATS.WNS { return [lindex [result $object] 2] }
        STATS.WHS { return [lindex [result $object] 3] }
        STATS.TPWS { return [setting STUB_TPWS 0.000] }
        PERIOD { return [lindex [worst_path $object] 1] }
        REQUIREMENT { return [lindex [worst_path $object] 2] }
        SLACK { return [lindex [worst_path $object] 3] }
    }
    error "there is no property '$name'"
}

proc create_project args {
    record [linsert $args 0 create_project]
    lassign [lrange $args 1 2] ::project_name ::project_folder
    set ::project_part [lindex $args end]
}

# Return the progress, the status, and the setup and hold slack of a run. The log of an implementation is replayed: the
# last estimate of the router counts, and an error ends the step that its identifier names.
proc result {run} {
    if {![regexp {^impl_(\d+)$} $run -> number]} {
        set progress [setting STUB_PROGRESS 100%]
        return [list $progress [expr {$progress eq "100%" ? "synth_design Complete!" : "synth_design ERROR"}]]
    }
    set log [read_all [lindex $::env(STUB_LOGS) $number-1]]
    if {[regexp {ERROR: \[(Place|Route) } $log -> step]} { return [list 30% "[string tolower $step]_design ERROR"] }
    set found [regexp -all -inline {Estimated Timing Summary \| WNS=(\S+) *\| TNS=\S+ *\| WHS=(\S+)} $log]
    return [list 100% "write_bitstream Complete!" {*}[lrange $found end-1 end]]
}

proc create_run args {
    record [linsert $args 0 create_run]
}

# Opens the implemented design, for which Vivado has read the constraints. Cells that match STUB_RENAMED do not exist.
proc open_run {run} {
    record [list open_run $run]
    foreach path [lsearch -all -inline $::added *floorplan.xdc] { source $path }
}
proc create_pblock {name} { dict set ::pblocks $name {} }
proc resize_pblock {pblock -add range} { record [list resize_pblock $pblock $range] }
proc add_cells_to_pblock {pblock cells} { dict set ::pblocks $pblock $cells }
proc get_pblocks {pattern} { return [dict keys $::pblocks $pattern] }
proc get_cells args {
    if {[lindex $args 0] ne "-quiet"} { return [lsearch -all -inline -not [lindex $args 0] [setting STUB_RENAMED ""]] }
    return [dict get $::pblocks [lindex [lindex $args end] end]]
}

# A clock and its worst path are the same object.
proc get_clocks {} { return [lmap path $::env(STUB_PATHS) { lindex $path 0 }] }
proc get_timing_paths {-quiet -delay_type max -max_paths 1 -to clock} { return $clock }
proc worst_path {clock} { return [lsearch -inline -index 0 $::env(STUB_PATHS) $clock] }

proc empty_file {path} {
    file mkdir [file dirname $path]
    close [open $path w]
}

# Writes the files of the real command to the same places.
proc launch_runs args {
    record [linsert $args 0 launch_runs]
    empty_file $::project_folder/$::project_name.gen/sources_1/bd/system/hw_handoff/system.hwh
    set run [lindex $args 0]
    if {"write_bitstream" in $args && [lindex [result $run] 0] eq "100%"} {
        empty_file $::project_folder/$::project_name.runs/$run/system_wrapper.bit
    }
}

proc report_timing_summary {-file path} {
    record [list report_timing_summary -file $path]
    empty_file $path
}

# --- the IP packager ----------------------------------------------------------------------------------------------

# The interfaces are named by X_INTERFACE_INFO in the file of the top module. The packager infers a memory map for the
# slave, and an address space for each master.
proc ipx::package_project args {
    record [linsert $args 0 ipx::package_project]
    set text [read_all [lindex [lsearch -all -inline $::added *.v] 0]]
    set ::interfaces {}
    foreach {- vlnv name} [regexp -all -inline {X_INTERFACE_INFO = "(\S+) (\w+) \w+"} $text] { dict set ::interfaces $name $vlnv }
    set ::maps guessed
    set ::spaces {}
    if {![setting STUB_NO_SPACES 0]} { set ::spaces [lsearch -all -inline [dict keys $::interfaces] m_axi_*] }
}

proc read_all {path} {
    set file [open $path]
    set text [read $file]
    close $file
    return $text
}

proc ipx::current_core {} { return core }
proc ipx::get_bus_interfaces {name -of_objects core} { return [expr {[dict exists $::interfaces $name] ? $name : {}}] }
proc ipx::get_memory_maps {-quiet -of_objects core} { return $::maps }
proc ipx::get_address_spaces {-quiet name -of_objects core} { return [lsearch -all -inline -exact $::spaces $name] }

proc ipx::remove_memory_map {name core} {
    record [list ipx::remove_memory_map $name]
    set ::maps [lsearch -all -inline -not -exact $::maps $name]
}

proc ipx::add_address_space {name core} {
    record [list ipx::add_address_space $name]
    lappend ::spaces $name
    return $name
}

# Added objects are named by their path.
proc ipx::add_memory_map {name core} {
    record [list ipx::add_memory_map $name]
    if {$::maps ne ""} { error "there is a memory map already: $::maps" }
    return $name
}
foreach kind {address_block register field} {
    proc ipx::add_$kind {name parent} "record \[list ipx::add_$kind \$name \$parent\]; return \$parent/\$name"
}

source $script

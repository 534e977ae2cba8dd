"""The C++ of the generated hardware: fixed headers, templates for the files of each design, and a linter.

systolic/, streaming/   one engine each: its headers, and ``sources``, which writes parameters and wiring around them
common/                 the headers of both engines
simulation/             replacements for the vendor's headers on a computer, which also record cycles
templates/              the text of generated files, in a folder for each part that they belong to
vendor/                 what Vitis HLS, Vivado and pynq read: Tcl, test bench, register map, hardware description
lint/                   finds in HLS C++ what the vendor's tools would refuse
``golden`` writes the golden program, ``param_header`` a network's parameters for other accelerators; ``render`` fills
in templates, and ``headers`` says which headers a design gets. Numbers come from the caller: nothing here decides.
"""

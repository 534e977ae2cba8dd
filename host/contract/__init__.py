"""The contract between generator and host: the manifest, the images, and the C ABI of the simulation library.

Only this package reads and writes ``manifest.json``. Each key is defined once, as a field of ``SystolicManifest`` or
``StreamingManifest``. Only this package calls a simulation library.
"""

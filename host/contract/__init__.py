"""What a generated folder promises whoever opens it: its manifest, its images, and the C ABI of its simulation library.

The only room that reads ``manifest.json``, and the only one that writes it: each key stands once, as a field of
``SystolicManifest`` or ``StreamingManifest``. The only room, too, that calls a simulation library.
"""

"""The accelerator styles, array and pipeline: ``style`` is their interface, ``registry`` lists them by name."""

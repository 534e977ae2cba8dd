"""The accelerator styles: ``style`` defines their interface, ``registry`` lists them, and each has a folder."""

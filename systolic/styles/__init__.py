"""The accelerator styles: ``style`` says what each answers, ``registry`` lists them, a folder implements one."""

"""What scales can be built by, by name; commands list it without loading JAX."""

GRADED = ("graded", "gpcm")  # models of ordered grades

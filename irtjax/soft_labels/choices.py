"""Ways to learn from soft labels beside hard ones, by name; commands list them without loading JAX."""

BASELINES = ("B0", "B1", "B2", "B3")
WITHOUT_HARD_DATA = ("B1", "B3", "I-CCE", "I-MSE")  # what is left to compare where all examples have soft labels
SOFT = ("I-CCE", "I-MSE", "S-CCE", "S-MSE")
METHODS = (*BASELINES, *SOFT)

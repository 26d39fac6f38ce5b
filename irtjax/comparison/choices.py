"""What comparisons of models can be asked for, by name; commands list it without loading JAX."""

WAYS = ("cells", "subjects", "items")  # to hold out

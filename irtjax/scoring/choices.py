"""What scores can be asked for, by name; commands list it without loading JAX."""

METHODS = ("eap", "map", "ml", "wle")

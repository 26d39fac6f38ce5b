"""What each command does, by the flags that the module of its name in `experiments` defines: what loads JAX."""

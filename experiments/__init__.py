"""Command-line experiments: flags in, a run directory out."""

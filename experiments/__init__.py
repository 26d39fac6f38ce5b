"""Command-line experiments; run with `python -m experiments.<name>`, or `irtjax <name>`."""

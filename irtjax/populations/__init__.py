"""The populations that abilities come from."""

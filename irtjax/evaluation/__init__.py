"""New subjects on banks of known items: adaptive tests."""

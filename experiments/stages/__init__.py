"""The stages of a run: each reads what earlier ones wrote and writes a folder of its own."""

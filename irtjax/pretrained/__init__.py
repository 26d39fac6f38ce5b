"""Encoders that others have trained, read from local folders in the layout of Hugging Face."""

"""Scored responses: the matrix, the files it is read from, and the agreement of people on labels."""

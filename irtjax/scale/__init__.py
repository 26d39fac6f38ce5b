"""Test scales: dimensions, guessing, item fit, local dependence, elimination, precision, confirmation."""

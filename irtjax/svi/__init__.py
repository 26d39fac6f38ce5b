"""Stochastic variational inference of NumPyro models."""

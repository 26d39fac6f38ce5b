"""Marginal maximum likelihood on nodes."""

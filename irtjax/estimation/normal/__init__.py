"""Marginal maximum likelihood with a normal posterior for each subject."""

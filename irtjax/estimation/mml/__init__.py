"""Marginal maximum likelihood: abilities are integrated out."""

"""Abilities of subjects, where the items are known, and what those items are worth."""

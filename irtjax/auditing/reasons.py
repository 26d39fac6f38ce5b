"""Reasons to look at an item of a benchmark; commands list them without loading JAX."""

DOUBTFUL, FALLING = "doubtful key", "able subjects do worse"
KNOWN, DEPENDENT, MISFIT = "known beforehand", "depends on another item", "curve does not fit"
FLAT, LOWEST, HIGHEST = "tells nothing", "nobody succeeds", "everybody succeeds"
REASONS = (DOUBTFUL, FALLING, KNOWN, DEPENDENT, MISFIT, FLAT, LOWEST, HIGHEST)

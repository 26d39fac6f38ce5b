"""What tests of DIF and links can be asked for, by name; commands list it without loading JAX."""

BY_SCORES = ("mantel_haenszel", "logistic")  # ways to test for DIF: in strata of equal scores
BY_MODEL = ("score", "likelihood_ratio", "wald")  # by one model of all groups
BY_SEPARATE_FITS = ("lord", "raju")
DIF_METHODS = (*BY_SCORES, *BY_MODEL, *BY_SEPARATE_FITS)
TESTS = ("both", "uniform", "nonuniform")

BY_CURVES, BY_MOMENTS = ("haebara", "stocking_lord"), ("mean_mean", "mean_geometric", "mean_sigma")
LINK_METHODS = (*BY_CURVES, *BY_MOMENTS)

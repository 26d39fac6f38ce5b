"""What variational inference can be asked for, by name; commands list it without loading NumPyro."""

MODELS = ("1pl", "2pl")  # of right and wrong answers
PRIORS = ("vague", "hierarchical")  # `irtjax.svi.model`
LOCATIONS = ("mml", "proportions")  # where a search begins; the first stands where they are equally good
BEST = "best"  # of these
STARTS = (BEST, *LOCATIONS)

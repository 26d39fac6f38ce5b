"""What score prediction and adaptive tests can be asked for, by name; commands list it without loading JAX."""

ONE_DIMENSION = (  # models that a benchmark is calibrated by
    "rasch", "1pl", "2pl", "3pl", "4pl", "graded", "gpcm", "pcm", "rsm", "binomial", "beta_binomial", "ordered_beta",
    "beta",
)  # fmt: skip
WAYS = ("random", "stratified", "anchors", "information", "variance")  # to choose the items of a form
PREDICTORS = ("mean", "spline", "ridge", "p-irt", "gp-irt", "posterior", "calibrated")  # of scores
HELD_OUT = 0.2  # of the subjects, whose scores are predicted
SIZES = (10, 30, 50, 100)  # of forms

RULES = ("information", "variance", "score", "kl", "kl_posterior", "determinant", "random")  # for the next item
MAX_ITEMS = 50  # of an adaptive test, unless another number is asked for
METHODS = ("eap", "map", "ml")  # for the ability in an adaptive test

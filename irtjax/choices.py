"""What fits, readers of responses and networks there are, by name; commands list it without loading JAX."""

AUTO = "auto"  # what the responses are
OF_RIGHT_WRONG = ("rasch", "1pl", "2pl", "3pl", "4pl")
OF_OTHERS = (  # of `irtjax.item_models.listing.MODELS`
    "graded", "gpcm", "pcm", "rsm", "nominal", "binomial", "binomial_1pl", "binomial_3pl", "binomial_4pl",
    "beta_binomial", "beta", "ordered_beta",
)  # fmt: skip
MODELS = (*OF_RIGHT_WRONG, *OF_OTHERS, AUTO)
ESTIMATORS = ("mml", "svi")
INTEGRATION = ("auto", "nodes", "around", "normal")  # `irtjax.integration.rules`

LAST = "last"  # of several answers of a subject to an item
USUAL = {"subject": "subject_id", "item": "item_id", "response": "response"}  # columns by role
TRIALS, FACET = "trials", "facet"  # of counts: how many each is of; who judged, or what else a response depends on
ROLES = (*USUAL, TRIALS, FACET)

NETWORKS = (  # `irtjax.networks.ours`
    "mlp", "lenet", "vgg16", "resnet", "lstm", "cnn", "nse", "esim", "bert", "lenet_study", "lstm_study", "cnn_study",
)  # fmt: skip

"""What trainings can be asked for: recipes, and those that are usual; commands list it without loading JAX."""

import dataclasses
from typing import Any

from irtjax.arguments import bounded, require_bounds
from irtjax.tasks.options import WIDEST

OPTIMIZERS = ("adam", "sgd")
SGD_RATE = 0.1  # of gradient descent without momentum, where nothing else is known
CHECKPOINT_SECONDS = 30.0  # least time from one checkpoint of a training to the next


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a network is trained; the defaults are those of the task `digits`.

    Attributes:
        network: name of the architecture, one of `irtjax.networks.choices(task)`, or one of your own
            (`irtjax.networks.build`).
        width: hidden units of a layer; of an image network with convolutions, the channels of the first.
        optimizer: adam, or sgd for stochastic gradient descent with `momentum`.
        learning_rate: of the optimizer.
        momentum: of sgd, the share of the last step that the next one repeats.
        weight_decay: decay: of sgd in its gradients, of all weights; of adam in its steps, not of biases and norms.
        clip: greatest norm of a gradient, beyond which it is scaled down; 0 for none.
        warmup: share of all steps in which the learning rate rises, to fall to 0 after them; None for a constant rate.
        batch_size: examples in a gradient step.
        max_epochs: largest number of epochs of a training.
        patience: epochs without a better validation accuracy after which it stops.
        steps_per_epoch: gradient steps in an epoch, whatever the size of the training set; None for a pass over the
            network's own training set, as many whole minibatches as it fills, at least one.
        train_embeddings: text: each network trains word vectors of its own; otherwise all share the task's.

    Raises:
        InputError: a field out of its bounds.
    """

    network: str = "mlp"
    width: int = bounded(32, 1, WIDEST)
    optimizer: str = bounded("adam", choices=OPTIMIZERS)
    learning_rate: float = bounded(5e-3, positive=True)
    momentum: float = bounded(0.0, 0, 0.999)
    weight_decay: float = bounded(0.0, 0, 1000)
    clip: float = bounded(0.0, 0, 1e9)
    warmup: float | None = bounded(None, 0, 1)
    batch_size: int = bounded(32, 1)
    max_epochs: int = bounded(40, 1)
    patience: int = bounded(5, 1)
    steps_per_epoch: int | None = bounded(37, 1)
    train_embeddings: bool = False

    def __post_init__(self) -> None:
        """Refuses what is out of bounds."""
        require_bounds(self)


OF_TEXT = Recipe("lstm", width=64, learning_rate=1e-3, max_epochs=15, patience=3, steps_per_epoch=200)
RECIPES = {
    "digits": Recipe(),
    "mnist": Recipe(learning_rate=2e-3, batch_size=64, max_epochs=20, steps_per_epoch=200),
    "cifar10": Recipe("lenet", 8, learning_rate=1e-3, batch_size=64, max_epochs=12, patience=3, steps_per_epoch=100),
    "sst2": OF_TEXT,
    "snli": OF_TEXT,
}
# Of networks that do not learn as usual: at a rate of 1e-3, VGG-16 stays at chance, and ResNet-8 learns more slowly
# than at 3e-3. Encoders are fine-tuned as by Devlin et al. (2019), appendix A.3.
NETWORK_RECIPES: dict[str, dict[str, Any]] = {
    "vgg16": {"learning_rate": 2e-4},
    "resnet": {"learning_rate": 3e-3},
    "bert": {
        "learning_rate": 5e-5,
        "weight_decay": 0.01,
        "clip": 1.0,
        "warmup": 0.1,
        "max_epochs": 3,
        "patience": 3,
        "steps_per_epoch": None,
    },
}


def sgd_rate(momentum: float) -> float:
    """The usual learning rate of gradient descent: with momentum μ, steps add up to 1/(1 - μ) times their size."""
    return SGD_RATE * (1 - momentum)

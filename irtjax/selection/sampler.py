"""The order in which a training loop goes through the examples that a curriculum has selected."""

from collections.abc import Iterator

import numpy as np

from irtjax.arguments import checks_types, whole_number
from irtjax.selection.curriculum import Curriculum


class Sampler:
    """Positions of the present epoch in an order of their own: what PyTorch's `DataLoader` takes as `sampler`.

    Any iterable with a length is a sampler to PyTorch, so nothing of it is imported here. Call `Curriculum.indices`
    before each epoch, then iterate.

    An epoch is one pass over the selected examples, in whole minibatches, drawn without replacement. Where they fill
    none, they are read again until they fill one. The order follows from the seed and the epoch, so that an interrupted
    training goes on as it would have. Give the loader the `batch_size` of the curriculum.
    """

    @checks_types
    def __init__(self, curriculum: Curriculum, seed: int = 0) -> None:
        """A sampler of a curriculum.

        Args:
            curriculum: whose latest selection is sampled.
            seed: of the order.

        Raises:
            InputError: the seed is not an integer from 0.
        """
        self.curriculum = curriculum
        self._seed = whole_number("seed", seed)

    def __len__(self) -> int:
        """Examples of the epoch: whole minibatches. Before the first one, as many as all examples fill."""
        curriculum = self.curriculum
        number = curriculum.difficulty.size if curriculum.epoch is None else curriculum.selected.size
        return max(number // curriculum.batch_size, 1) * curriculum.batch_size

    def __iter__(self) -> Iterator[int]:
        """The positions.

        Raises:
            InputError: nothing has been selected yet.
        """
        selected = self.curriculum.selected
        shuffled = np.random.default_rng((self._seed, self.curriculum.epoch or 0)).permutation(selected)
        yield from np.resize(shuffled, len(self)).tolist()

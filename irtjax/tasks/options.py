"""What can be chosen about a task."""

import dataclasses
from collections.abc import Callable, Collection
from pathlib import Path

from irtjax.arguments import bounded, require_bounds
from irtjax.errors import InputError
from irtjax.tasks.choices import VECTORS

WIDEST = 65_536  # layers and word vectors


@dataclasses.dataclass(frozen=True)
class TaskOptions:
    """Choices of `irtjax.tasks.load`.

    Attributes:
        data_dir: folder of prepared TensorFlow Datasets; None for that package's own default.
        dataset: TFDS name to read in place of the task's own, such as `cifar10_test1k` or `snli_subset`.
        test_labels: CSV file with columns idx and label, for a test split whose labels are withheld (sst2).
        item_ids: CSV file of ids for examples, which are recognised by their text (text tasks; see
            `irtjax.tasks.item_ids`).
        extra_items: CSV file of ids, texts and labels, or NPZ file of images, a split of its own for crowds to answer
            (see `irtjax.tasks.extra_items`, `irtjax.tasks.extra_images`).
        glove: file of word vectors in GloVe's text format (text tasks).
        pretrained: folder of an encoder, by whose word pieces the text is read (text tasks; see
            `irtjax.pretrained.folder`).
        vectors: word vectors where there is no `glove`: ppmi, made from the training text, or random (text tasks).
        embedding_dim: length of word vectors that do not come from a file (text tasks).
        min_count: a word enters the vocabulary if the training text has it at least this often (text tasks).
        max_words: words of a sentence, beyond which it is cut (text tasks). A network takes as many steps as the
            longest sentence of a minibatch has words.
        seed: of random word vectors (text tasks).
        on_progress: called with a description, the amount done and the total, while files are read.
        on_note: called with one line of news, such as how many words the vectors cover or how many ids were found.
    """

    data_dir: str | Path | None = None
    dataset: str | None = None
    test_labels: str | Path | None = None
    item_ids: str | Path | None = None
    extra_items: str | Path | None = None
    glove: str | Path | None = None
    pretrained: str | Path | None = None
    vectors: str = bounded("ppmi", choices=VECTORS)
    embedding_dim: int = bounded(100, 1, WIDEST)
    min_count: int = bounded(2, 1)
    max_words: int = bounded(256, 1)
    seed: int = 0
    on_progress: Callable[[str, int, int], None] = lambda *_: None
    on_note: Callable[[str], None] = lambda _: None

    def check(self, task: str, unused: Collection[str]) -> None:
        """Refuses bad values, and values that the task would silently ignore.

        Args:
            task: named in errors.
            unused: fields that the task ignores.

        Raises:
            InputError: names the option.
        """
        for field in dataclasses.fields(self):
            if field.name in unused and getattr(self, field.name) != field.default:
                raise InputError(f"`{field.name}`={getattr(self, field.name)}: the task {task} has no use for it")
        if self.pretrained:
            own = ("glove", "vectors", "embedding_dim", "min_count", "max_words")
            self._refuse(own, "`pretrained` has words of its own")
        if self.glove:
            self._refuse(("vectors", "embedding_dim"), "`glove` has vectors of its own")
        require_bounds(self)

    def _refuse(self, names: Collection[str], reason: str) -> None:
        for field in dataclasses.fields(self):
            if field.name in names and getattr(self, field.name) != field.default:
                raise InputError(f"`{field.name}`={getattr(self, field.name)}: {reason}")

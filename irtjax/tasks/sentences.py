"""Makes a task of examples of one or two sentences."""

import numpy as np

from irtjax.pretrained.folder import Pretrained, read_pretrained
from irtjax.pretrained.pieces import Pieces
from irtjax.tasks import glove, text, vectors
from irtjax.tasks.extra_items import joined, read_examples
from irtjax.tasks.item_ids import rename
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import Split, Task, TextFormat


def make_task(name: str, splits: dict[str, text.Examples], classes: tuple[str, ...], options: TaskOptions) -> Task:
    """Numbers the words and finds their vectors.

    The vocabulary is that of the training split. A GloVe file adds words that are rare or absent there, if it has
    vectors for them. With a pre-trained encoder, words and vectors are the encoder's.

    Args:
        name: of the task.
        splits: the examples of each split.
        classes: names of the labels.
        options: of the vocabulary, the vectors and the ids.

    Raises:
        InputError: a file named in `options` is bad.
    """
    examples = dict(splits)
    if options.extra_items is not None:
        examples["extra"] = read_examples(options.extra_items, len(splits["train"].sentences), classes)
    inputs, format = (_by_words if options.pretrained is None else _by_pieces)(examples, options)
    ids = {split: own.ids for split, own in examples.items()}
    if options.item_ids is not None:
        renamed, note = rename(options.item_ids, splits, classes)
        ids |= renamed
        options.on_note(note)
    made = {
        split: Split(inputs[split], own.labels, ids[split], joined(own.sentences)) for split, own in examples.items()
    }
    return Task(name=name, classes=classes, format=format, **made)


Inputs = dict[str, tuple[np.ndarray, ...]]  # by split, one array per sentence of an example


def _by_words(examples: dict[str, text.Examples], options: TaskOptions) -> tuple[Inputs, TextFormat]:
    lexicon: dict[str, int] = {}
    words = {
        split: tuple(text.number_words(sentences, lexicon) for sentences in own.sentences)
        for split, own in examples.items()
    }
    words = _cut(words, options)
    vocabulary = [*text.SPECIAL, *text.choose_vocabulary(words["train"], lexicon, options.min_count)]
    known = {} if options.glove is None else glove.read_glove(options.glove, lexicon, options.on_progress)
    vocabulary += sorted(known.keys() - set(vocabulary))
    inputs, buckets = _padded(words, text.lookup_table(lexicon, vocabulary))
    if known:
        embeddings = glove.embed(vocabulary, known, options.seed)
        options.on_note(f"{options.glove}: vectors for {len(known):,} of {len(vocabulary) - len(text.SPECIAL):,} words")
    else:
        embeddings = vectors.make_vectors(
            options.vectors, inputs["train"], len(vocabulary), options.embedding_dim, options.seed
        )
    return inputs, TextFormat(tuple(vocabulary), embeddings, buckets)


def _cut(words: dict[str, tuple[text.Words, ...]], options: TaskOptions) -> dict[str, tuple[text.Words, ...]]:
    """The sentences of all splits without what is beyond the most words of one."""
    lengths = np.concatenate([part.lengths for own in words.values() for part in own])
    if longer := int((lengths > options.max_words).sum()):
        options.on_note(
            f"{longer:,} {'text has' if longer == 1 else 'texts have'} more than {options.max_words:,} words (up to "
            f"{lengths.max():,}), of which the first {options.max_words:,} are read; `max_words` can say otherwise"
        )
    return {split: tuple(text.cut(part, options.max_words) for part in own) for split, own in words.items()}


def _by_pieces(examples: dict[str, text.Examples], options: TaskOptions) -> tuple[Inputs, TextFormat]:
    assert options.pretrained is not None
    encoder = read_pretrained(options.pretrained)
    words = {split: text.number_pieces(own.sentences, encoder) for split, own in examples.items()}
    inputs, buckets = _padded(words, _same(encoder), pieces=True)
    return inputs, TextFormat(Pieces(encoder).vocabulary, encoder.vectors, buckets, encoder)


def by_pieces(sentences: tuple[list[str], ...], encoder: Pretrained) -> tuple[Split, TextFormat]:
    """Texts that belong to no task, in the word pieces of an encoder; their labels are 0."""
    words = {"train": text.number_pieces(sentences, encoder)}
    inputs, buckets = _padded(words, _same(encoder), pieces=True)
    labels = np.zeros(len(sentences[0]), np.int32)
    split = Split(inputs["train"], labels, np.arange(labels.size).astype(str), joined(sentences))
    return split, TextFormat(Pieces(encoder).vocabulary, encoder.vectors, buckets, encoder)


def _same(encoder: Pretrained) -> np.ndarray:
    """A word piece has the number that it has for the encoder."""
    number = len(Pieces(encoder).vocabulary)
    return np.arange(number, dtype=np.min_scalar_type(number - 1))


def _padded(
    words: dict[str, tuple[text.Words, ...]], table: np.ndarray, pieces: bool = False
) -> tuple[Inputs, tuple[tuple[int, ...], ...]]:
    """The sentences of all splits as rows of arrays, and the lengths to batch at, for word pieces closer ones."""
    train = words["train"]
    longest = [max(int(own[at].lengths.max()) for own in words.values()) for at in range(len(train))]
    if pieces and len(train) == 1:
        buckets = text.least_padded(train[0].lengths, longest[0])
    else:
        few = len(train[0].lengths) < text.FEW
        by_words = text.FEW_SHARES if few else text.BUCKET_SHARES
        buckets = text.choose_buckets(train, longest, text.FINER_SHARES if pieces else by_words)
    inputs = {
        split: tuple(text.pad(part, table, width) for part, width in zip(own, buckets[-1], strict=True))
        for split, own in words.items()
    }
    return inputs, buckets

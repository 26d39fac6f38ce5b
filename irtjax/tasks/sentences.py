"""Makes a task of examples of one or two sentences."""

from irtjax.tasks import glove, text, vectors
from irtjax.tasks.extra_items import joined, read_examples
from irtjax.tasks.item_ids import rename
from irtjax.tasks.options import Options
from irtjax.tasks.task import Split, Task, TextFormat


def make_task(name: str, splits: dict[str, text.Examples], classes: tuple[str, ...], options: Options) -> Task:
    """Numbers the words and finds their vectors.

    The vocabulary is that of the training split. A GloVe file adds words that are rare or absent there, if it has
    vectors for them.

    Args:
        name: of the task.
        splits: the examples of each split.
        classes: names of the labels.
        options: of the vocabulary, the vectors and the ids.

    Raises:
        InputError: a file named in `options` is bad.
    """
    lexicon: dict[str, int] = {}
    examples = dict(splits)
    if options.extra_items is not None:
        examples["extra"] = read_examples(options.extra_items, len(splits["train"].sentences), classes)
    words = {
        split: tuple(text.number_words(sentences, lexicon) for sentences in own.sentences)
        for split, own in examples.items()
    }
    longest = [max(int(own[at].lengths.max()) for own in words.values()) for at in range(len(words["train"]))]
    buckets = text.choose_buckets(words["train"], longest)
    vocabulary = [*text.SPECIAL, *text.choose_vocabulary(words["train"], lexicon, options.min_count)]
    known = {} if options.glove is None else glove.read_glove(options.glove, lexicon, options.on_progress)
    vocabulary += sorted(known.keys() - set(vocabulary))
    table = text.lookup_table(lexicon, vocabulary)
    inputs = {
        split: tuple(text.pad(part, table, width) for part, width in zip(own, buckets[-1], strict=True))
        for split, own in words.items()
    }
    if known:
        embeddings = glove.embed(vocabulary, known, options.seed)
        options.on_note(f"{options.glove}: vectors for {len(known):,} of {len(vocabulary) - len(text.SPECIAL):,} words")
    else:
        embeddings = vectors.make_vectors(
            options.vectors, inputs["train"], len(vocabulary), options.embedding_dim, options.seed
        )
    ids = {split: own.ids for split, own in examples.items()}
    if options.item_ids is not None:
        renamed, note = rename(options.item_ids, splits, classes)
        ids |= renamed
        options.on_note(note)
    made = {
        split: Split(inputs[split], own.labels, ids[split], joined(own.sentences)) for split, own in examples.items()
    }
    return Task(name=name, classes=classes, format=TextFormat(tuple(vocabulary), embeddings, buckets), **made)

"""Which columns of a table, or features of a data set, are the inputs, the label, the id and the split."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from irtjax.errors import InputError

LABELS = ("label", "gold_label", "target", "class")
IDS = ("item_id", "phrase_id", "pair_id", "id", "idx", "index")
SPLIT = "split"
TEXTS = (("text",), ("sentence",), ("premise", "hypothesis"), ("sentence1", "sentence2"), ("question", "sentence"))
SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
MOST_SHOWN = 12
LONGEST_NAME = 40  # characters of a column's name that messages show

Names = str | Sequence[str] | None


class Columns(NamedTuple):
    """The columns of a task.

    Attributes:
        kind: of the inputs: text, number or image.
        inputs: their names.
        label: of the classes.
        id: of names of the examples; None for none.
        split: of the split that each example is in; None for none.
        guessed: those of `id` and `split` that nobody named.
    """

    kind: str
    inputs: tuple[str, ...]
    label: str
    id: str | None
    split: str | None
    guessed: tuple[str, ...]


def choose_columns(
    kinds: Mapping[str, str],
    *,
    text: Names = None,
    features: Names = None,
    image: str | None = None,
    label: str | None = None,
    id: str | None = None,
    split: str | None = None,
) -> Columns:
    """The columns that are named, and the usual ones for others.

    Args:
        kinds: what each column has: text, number, image, class (numbers with names) or other.
        text: one or two columns of text.
        features: columns of numbers.
        image: the column of images.
        label: by default the only one of the kind class, or the first of `LABELS`.
        id: by default the first of `IDS`.
        split: by default `split`.

    Raises:
        InputError: a column is not there, inputs are named in several ways, or it cannot be told which they are; lists
            the columns.
    """
    texts, numbers = _listed(text), _listed(features)
    for name in (*texts, *numbers, image, label, id, split):
        if name is not None and name not in kinds:
            raise InputError(f"no column {name}, only {_some(kinds)}")
    label = label or _label(kinds)
    guessed = []
    if id is None and (id := next((name for name in IDS if name in kinds and name != label), None)) is not None:
        guessed.append(id)
    if split is None and SPLIT in kinds and label != SPLIT:
        split = SPLIT
        guessed.append(split)
    if sum(map(bool, (texts, numbers, image))) > 1:
        raise InputError("`text`, `features` and `image` are named: inputs are of one kind, name one of them")
    if len(texts) > 2:
        raise InputError(f"{len(texts)} columns of text, expected one or two: put others together")
    if twice := {label, *([id] if id else []), *([split] if split else [])} & {
        *texts,
        *numbers,
        *([image] if image else []),
    }:
        guessed = [name for name in guessed if name not in twice]
        id, split = (None if name in twice else name for name in (id, split))
        if label in twice:
            raise InputError(f"the column {label} is named as the label and among the inputs")
    for kind, names in (("text", texts), ("number", numbers), ("image", (image,) if image else ())):
        if names:
            return Columns(kind, names, label, id, split, tuple(guessed))
    kind, names = _inputs({name: own for name, own in kinds.items() if name not in (label, id, split)}, kinds)
    return Columns(kind, names, label, id, split, tuple(guessed))


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else () if names is None else tuple(names)


def _label(kinds: Mapping[str, str]) -> str:
    classes = [name for name, kind in kinds.items() if kind == "class"]
    if len(classes) == 1:
        return classes[0]
    found = next((name for name in LABELS if name in kinds), None)
    if found is None:
        odd = any(len(name) > LONGEST_NAME or _is_number(name) for name in kinds)
        hint = " (is the first line an example? It should have the names of the columns)" if odd else ""
        raise InputError(f"no column {LABELS[0]}, only {_some(kinds)}: name the one of the classes, `label`{hint}")
    return found


def _inputs(rest: Mapping[str, str], every: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The kind and the names of the inputs among the columns that nothing else is known of."""
    of_kind = {kind: tuple(name for name in rest if rest[name] == kind) for kind in ("image", "text", "number")}
    if len(of_kind["image"]) == 1:
        return "image", of_kind["image"]
    usual = next((names for names in TEXTS if all(rest.get(name) == "text" for name in names)), None)
    if usual:
        return "text", usual
    if of_kind["number"] and len(of_kind["number"]) == len(rest):
        return "number", of_kind["number"]
    if 1 <= len(of_kind["text"]) <= 2 and not of_kind["number"]:
        return "text", of_kind["text"]
    raise InputError(
        "which columns are the inputs? Name those of text, `text`, or those of numbers, `features`, among "
        f"{_some(every)}"
    )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _some(names: Mapping[str, str]) -> str:
    shown = list(names)[:MOST_SHOWN] or ["no other"]
    cut = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…" for name in map(str, shown)]
    return ", ".join(cut) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def split_of(name: str) -> str | None:
    """The split that a name stands for, such as dev for validation; None if it stands for none."""
    return SPLIT_NAMES.get(name.strip().lower())

"""Text as word numbers: tokeniser, vocabulary, padded arrays and the lengths that examples are batched at."""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.pretrained.folder import Pretrained
from irtjax.pretrained.pieces import Pieces
from irtjax.tasks.task import PADDING, UNKNOWN, Split, Task, TextFormat

SPECIAL = ("<padding>", "<unknown>")  # the words numbered PADDING and UNKNOWN
BUCKET_SHARES = (0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
FEW = 5_000  # training examples, of which fewer are trained on in less time than six programs take to compile
FEW_SHARES = (0.5, 0.9, 1.0)  # of so few
FINER_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
ROW_LENGTHS = 14  # of rows that an encoder reads: twenty would save 3% of its time, but each takes 8 seconds to compile

# One spelling for each of the marks that corpora write differently; the brackets are those of the Penn Treebank.
_SPELLINGS = {"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "``": '"', "''": '"', "-lrb-": "(", "-rrb-": ")"}
_SPELLING = re.compile("|".join(sorted(map(re.escape, _SPELLINGS), key=len, reverse=True)))
_CLITIC = r"'(?:s|re|ve|ll|d|m)\b"
# Chinese characters, kana, Thai, Lao, Khmer and Burmese: scripts without spaces between words
_UNSPACED = (
    "\u3005\u3006\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e01-\u0e46\u0e81-\u0ec6\u1000-\u102a\u1780-\u17b3"
)


def _marks() -> str:
    """Marks that belong to the character before them, as a class of an expression; none is a letter to `re`."""
    found = [at for at in range(0x300, 0x10000) if unicodedata.category(chr(at)) in ("Mn", "Mc")]
    ends = [at for at, after in zip(found, [*found[1:], 0], strict=True) if after != at + 1]
    starts = [at for before, at in zip([0, *found], found, strict=False) if before != at - 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True)) + "ー"


def _token(letter: str, marks: str = "") -> re.Pattern[str]:
    """Matches a word; `letter` is one character of it, `marks` are those that are letters too."""
    return re.compile(
        rf"""
          {letter}+(?=n't\b)                         # do|n't, ca|n't
        | n't\b
        | {_CLITIC} | '(?:em|n|tis|twas|\d\ds?)\b   # 's 're 've 'll 'd 'm, 'em 'n 'tis 'twas '60s
        | (?:mr|mrs|ms|dr|jr|sr|vs|etc)\.(?=\s|$)
        | (?:[a-z]\.){{2,}}                         # u.s.
        | \d+(?:[.,:]\d+)+                          # 10,000 3.5 12:30
        | {letter}+(?:(?!{_CLITIC})[-/&']{letter}+)* # whole words: well-made and/or o'clock
        | ([^\w\s{marks}])\1*                       # a mark, or a run of one mark: ... -- !!
        """,
        re.VERBOSE,
    )


_TOKEN = _token(r"\w")
_MARKS = _marks()
_SPACED = _token(rf"(?:(?![{_UNSPACED}])[\w{_MARKS}])", _MARKS)
_TOKEN_OF_ANY_SCRIPT = re.compile(rf"[{_UNSPACED}][{_MARKS}]* | {_SPACED.pattern}", re.VERBOSE)


class Examples(NamedTuple):
    """N examples before their words are numbered.

    Attributes:
        sentences: lists of N strings, one list per sentence of an example.
        labels: (N,) int32.
        ids: (N,) names.
    """

    sentences: tuple[list[str], ...]
    labels: np.ndarray
    ids: np.ndarray


def normalise(text: str) -> str:
    """Lower case, compatible characters and one spelling of quotes and brackets."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _SPELLING.sub(lambda match: _SPELLINGS[match.group()], text.lower())


def tokenise(text: str) -> list[str]:
    """The words of a text, lower-cased, in the manner of the Penn Treebank.

    Punctuation stands alone (a run of one mark is one word), the clitics n't, 's, 're, 've, 'll, 'd and 'm are split
    off; hyphenated words, numbers and abbreviations such as `u.s.` stay whole. Curly quotes, `` and '' become straight
    ones, and -lrb- a bracket. Texts that have this form already, as in SST, do not change.

    Of scripts without spaces between words, such as Chinese characters, kana and Thai, each character is a word,
    together with the marks above and below it.
    """
    text = normalise(text)
    pattern = _TOKEN if text.isascii() else _TOKEN_OF_ANY_SCRIPT
    return [match.group() for match in pattern.finditer(text)]


class Words(NamedTuple):
    """N sentences as numbers, one after the other.

    Attributes:
        numbers: (T,) int32, the words of all sentences, of a lexicon or of an encoder's word pieces.
        lengths: (N,) words of each sentence.
    """

    numbers: np.ndarray
    lengths: np.ndarray


def number_words(sentences: Iterable[str], lexicon: dict[str, int]) -> Words:
    """Tokenises sentences; words that `lexicon` lacks are added to it with the next number."""
    numbers, lengths = array("i"), array("i")
    known: dict[str, array] = {}  # in SNLI, three hypotheses share a premise
    for sentence in sentences:
        words = known.get(sentence)
        if words is None:
            words = array("i", [lexicon.setdefault(word, len(lexicon)) for word in tokenise(sentence)])
            known[sentence] = words
        numbers.extend(words)
        lengths.append(len(words))
    return Words(np.array(numbers, np.int32), np.array(lengths, np.int32))


def cut(words: Words, longest: int) -> Words:
    """The sentences without what is beyond so many words of each."""
    starts = np.cumsum(words.lengths) - words.lengths
    kept = np.arange(len(words.numbers)) - np.repeat(starts, words.lengths) < longest
    return Words(words.numbers[kept], np.minimum(words.lengths, longest))


def number_pieces(sentences: tuple[Sequence[str], ...], encoder: Pretrained) -> tuple[Words, ...]:
    """Sentences of examples as an encoder's word pieces, with the marks before the first and after each.

    A sentence has as many of the encoder's positions as any other of its example; what goes beyond them is cut off.
    """
    pieces = Pieces(encoder)
    longest = encoder.config.positions // len(sentences)
    rows = [pieces.numbers(texts, longest, first=at == 0) for at, texts in enumerate(sentences)]
    return tuple(
        Words(np.array([number for row in part for number in row], np.int32), np.array([*map(len, part)], np.int32))
        for part in rows
    )


def choose_vocabulary(train: Sequence[Words], lexicon: dict[str, int], min_count: int) -> list[str]:
    """The words that training sentences have at least `min_count` times, most frequent first, then alphabetical."""
    counts = np.sum([np.bincount(words.numbers, minlength=len(lexicon)) for words in train], axis=0)
    spelled = list(lexicon)
    kept = np.flatnonzero(counts >= max(min_count, 1))
    return [spelled[at] for at in sorted(kept, key=lambda at: (-counts[at], spelled[at]))]


def choose_buckets(
    train: Sequence[Words], longest: Sequence[int], shares: Sequence[float] = BUCKET_SHARES
) -> tuple[tuple[int, ...], ...]:
    """Lengths to batch at: quantiles of the lengths of training sentences, rounded up to even numbers.

    Args:
        train: the training sentences, one entry per sentence of an example.
        longest: words of the longest sentence of any split, one number per sentence; the last bucket holds it.
        shares: which quantiles, 1 last. A program is compiled for each; the more there are, the less is padded.
    """
    quantiles = [np.quantile(words.lengths, shares, method="inverted_cdf") for words in train]
    buckets = [tuple(_even(length) for length in lengths) for lengths in zip(*quantiles, strict=True)]
    buckets[-1] = tuple(_even(length) for length in longest)
    return tuple(sorted(set(buckets)))


def least_padded(lengths: np.ndarray, longest: int, count: int = ROW_LENGTHS) -> tuple[tuple[int, ...], ...]:
    """The lengths to batch rows at that leave the least padding, for examples that are one row each.

    By dynamic programming: the words of all rows of up to e words, padded to k lengths of which e is the last, are
    the minimum over s ≤ e of those of rows of up to s words at k - 1 lengths, plus e for each row beyond.

    Args:
        lengths: (N,) words of each training row.
        longest: of the rows of any split; the last length.
        count: how many lengths at most. A program is compiled for each.
    """
    longest = max(longest, 1)  # a row without words takes one
    rows = np.cumsum(np.bincount(np.maximum(lengths, 1), minlength=longest + 1))  # of at most e words
    ends = np.arange(longest + 1)
    padded, starts = ends * rows, []
    for _ in range(count - 1):
        choices = padded[:, None] + ends[None] * (rows[None] - rows[:, None])  # (s, e)
        choices = np.where(ends[:, None] <= ends[None], choices, np.iinfo(choices.dtype).max)
        starts.append(choices.argmin(0))
        padded = choices.min(0)
    chosen = [longest]
    for start in reversed(starts):
        chosen.append(int(start[chosen[-1]]))
    return tuple((length,) for length in sorted(set(chosen) - {0}))


@checks_types
def bucket_of(inputs: Sequence[np.ndarray], buckets: Sequence[Sequence[int]]) -> np.ndarray:
    """The smallest bucket that holds all sentences of each example.

    Args:
        inputs: arrays (N, L) of word numbers, one array per sentence of an example.
        buckets: ascending lengths, as in `TextFormat`.

    Returns:
        (N,) uint8 positions in `buckets`.

    Raises:
        InputError: an example is longer than the last bucket.
    """
    found = np.zeros(len(inputs[0]), np.uint8)
    for at, sentence in enumerate(inputs):
        widths = np.array([bucket[at] for bucket in buckets])
        lengths = (sentence != PADDING).sum(axis=1)
        if lengths.max(initial=0) > widths[-1]:
            raise InputError(f"a sentence of {lengths.max()} words does not fit the last bucket, of {widths[-1]}")
        found = np.maximum(found, np.searchsorted(widths, lengths).astype(np.uint8))
    return found


def lengths(split: Split) -> np.ndarray:
    """(N,) words of each example, all its sentences together."""
    return sum((sentence != PADDING).sum(axis=1) for sentence in split.inputs)


def lengths_of_first(task: Task) -> np.ndarray:
    """(N,) words of the first sentence of each training example: of a pair the premise, as in Lalor and Yu (2020)."""
    assert isinstance(task.format, TextFormat)
    first = task.train.inputs[0]
    return ((first != PADDING) & (first < len(task.format.vocabulary))).sum(axis=1)


def pad(words: Words, table: np.ndarray, width: int) -> np.ndarray:
    """Sentences as the rows of an array.

    Args:
        words: N sentences.
        table: for every number of the lexicon, the word's number in the vocabulary.
        width: L, at least the longest sentence.

    Returns:
        (N, L) in the dtype of `table`, with `PADDING` at the end; a sentence without words is one `UNKNOWN`, so that no
        row is all padding.
    """
    rows = np.full((len(words.lengths), width), PADDING, table.dtype)
    rows[np.arange(width) < words.lengths[:, None]] = table[words.numbers]
    rows[words.lengths == 0, 0] = UNKNOWN
    return rows


def lookup_table(lexicon: dict[str, int], vocabulary: Sequence[str]) -> np.ndarray:
    """The vocabulary's number of every word of the lexicon, in the smallest dtype; `UNKNOWN` for words it lacks."""
    table = np.full(len(lexicon), UNKNOWN, np.min_scalar_type(len(vocabulary) - 1))
    for number, word in enumerate(vocabulary):
        if word in lexicon and number > UNKNOWN:
            table[lexicon[word]] = number
    return table


def decode(inputs: Sequence[np.ndarray], vocabulary: Sequence[str]) -> list[str]:
    """Examples as text: words joined by spaces, sentences by ' / '."""
    spelled = [
        [" ".join(vocabulary[number] for number in row if number != PADDING) for row in sentence] for sentence in inputs
    ]
    return [" / ".join(sentences) for sentences in zip(*spelled, strict=True)]


@checks_types
def describe(task: Task, split: Split) -> list[str]:
    """The text of each example of a text task; its words where the original text is not kept.

    Raises:
        InputError: the task is not one of text, or one of packed pairs whose text is not kept.
    """
    if split.texts is not None:
        return list(split.texts)
    if not isinstance(task.format, TextFormat) or not isinstance(split.inputs, tuple):
        raise InputError(f"{task.name}: the examples are images, which have no text")
    if task.format.packed:
        raise InputError(f"{task.name}: pairs are packed, and their texts were not kept")
    return decode(split.inputs, task.format.vocabulary)


def _even(length: int) -> int:
    return max(2, int(length) + int(length) % 2)

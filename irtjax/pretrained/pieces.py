"""Sentences as the word pieces of a pre-trained encoder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irtjax.errors import InputError
from irtjax.pretrained.folder import Pretrained
from irtjax.storage.json_files import read_json
from irtjax.storage.sources import one_line, reading

TOKENIZER, VOCABULARY, SETTINGS = "tokenizer.json", "vocab.txt", "tokenizer_config.json"
FIRST, LAST = "[CLS]", "[SEP]"  # before the first sentence, and after each


class Pieces:
    """Splits texts into the word pieces of an encoder (Wu et al. 2016), as its folder says."""

    def __init__(self, pretrained: Pretrained):
        """Reads `tokenizer.json`, or else `vocab.txt`.

        Raises:
            InputError: neither is there, it is damaged, or its words are not those of the encoder.
        """
        self._folder = pretrained.folder
        self._tokenizer = _read_tokenizer(pretrained.folder)
        self.first, self.last = (self._tokenizer.token_to_id(name) for name in (FIRST, LAST))
        if self.first is None or self.last is None:
            raise InputError(f"{pretrained.folder}: its vocabulary has no {FIRST if self.first is None else LAST}")
        number, words = self._tokenizer.get_vocab_size(), pretrained.config.words
        if number > words:
            raise InputError(f"{pretrained.folder}: its vocabulary has {number:,} word pieces, the encoder {words:,}")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All word pieces by their number."""
        words = self._tokenizer.get_vocab()
        return tuple(sorted(words, key=words.__getitem__))

    def numbers(self, sentences: Sequence[str], longest: int, first: bool = True) -> list[list[int]]:
        """The numbers of the word pieces of each sentence, with what stands before and after it.

        Args:
            sentences: texts.
            longest: most word pieces, these included; what goes beyond it is cut off.
            first: whether it is the first sentence of an example.

        Raises:
            InputError: the vocabulary cannot split a sentence, as one without a piece for what is unknown.
        """
        before = [self.first] if first else []
        room = longest - len(before) - 1
        try:
            encoded = self._tokenizer.encode_batch(list(sentences), add_special_tokens=False)
        except Exception as error:  # the package raises nothing more particular
            raise InputError(
                f"{self._folder}: its vocabulary does not split all texts ({one_line(error)}): copy it again"
            ) from error
        return [[*before, *one.ids[:room], self.last] for one in encoded]


def _read_tokenizer(folder: Path) -> Any:
    try:
        from tokenizers import BertWordPieceTokenizer, Tokenizer
    except ImportError as error:
        raise InputError(f"{folder}: to read its vocabulary, pip install 'irtjax[pretrained]'") from error
    name = TOKENIZER if (folder / TOKENIZER).exists() else VOCABULARY
    lower = _lower_case(folder)
    with reading(folder / name) as path:
        try:
            if name == TOKENIZER:
                tokenizer = Tokenizer.from_file(str(path))
                tokenizer.no_truncation()
                tokenizer.no_padding()
                return tokenizer
            return BertWordPieceTokenizer(str(path), lowercase=lower)
        except Exception as error:  # the package raises nothing more particular
            raise InputError(f"is damaged or of another kind ({error}): copy it again") from error


def _lower_case(folder: Path) -> bool:
    """What the settings of the vocabulary say of capitals; none are lower case."""
    settings = folder / SETTINGS
    found = read_json(settings) if settings.exists() else {}
    lower = found.get("do_lower_case", True) if isinstance(found, dict) else None
    if not isinstance(lower, bool):
        raise InputError(f"{settings}: do_lower_case is not there or neither true nor false: copy it again")
    return lower

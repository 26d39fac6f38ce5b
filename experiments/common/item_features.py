"""Features of items from their texts and the columns of their table."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

from experiments.common.progress import reading_bar
from irtjax.errors import InputError
from irtjax.fits.item_features import ItemFeatures, item_features
from irtjax.pretrained.folder import Pretrained
from irtjax.tasks.item_texts import ItemTexts
from irtjax.tasks.sentences import by_pieces
from irtjax.tasks.text import tokenise
from irtjax.training.features import features


class Features(NamedTuple):
    """Features of I items.

    Attributes:
        ids: (I,) of the items.
        lengths: (I, texts) log of one more than the number of words.
        columns: (I, C) numbers as they are, and words as one column per word, 1 or 0.
        vectors: (I, H) or (I, 4H) of an encoder; (I, 0) without one.
    """

    ids: np.ndarray
    lengths: np.ndarray
    columns: np.ndarray
    vectors: np.ndarray

    def blocks(self) -> ItemFeatures:
        """All of them; lengths, columns and vectors are a block each, of a pair also u, v, |u - v| and u ∘ v.

        Raises:
            InputError: numbers that are too large.
        """
        vectors = np.split(self.vectors, 1 if self.lengths.shape[1] == 1 else 4, axis=1)
        named = {"lengths": self.lengths, "columns": self.columns}
        named |= {f"vectors {at + 1}": part for at, part in enumerate(vectors)}
        parts = {name: part for name, part in named.items() if part.shape[1]}
        return item_features(parts, self.ids)


def features_of(items: ItemTexts, encoder: Pretrained | None, like: pd.DataFrame, name: str) -> Features:
    """The features of items.

    Args:
        items: with their texts.
        encoder: that reads the texts; or None.
        like: the table whose words have a column each; others have 0 in all of them.
        name: what the progress bar calls the items.

    Raises:
        InputError: a column has numbers in `like` and words here.
    """
    lengths = np.log1p([[len(tokenise(text)) for text in part] for part in items.sentences]).T
    vectors = np.zeros((len(items.ids), 0))
    if encoder is not None:
        split, format = by_pieces(items.sentences, encoder)
        with reading_bar() as on_progress:
            vectors = features(format, encoder, split, lambda done, total: on_progress(name, done, total))
    return Features(items.ids, lengths, _columns(items.table, like), vectors)


def _columns(table: pd.DataFrame, like: pd.DataFrame) -> np.ndarray:
    parts = [np.zeros((len(table), 0))]
    for name in like:
        if pd.api.types.is_numeric_dtype(like[name]):
            if not pd.api.types.is_numeric_dtype(table[name]):
                raise InputError(f"column {name} has numbers for some items, and words for others")
            parts.append(table[[name]].to_numpy(float))
        else:
            encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            encoder.fit(like[[name]].astype(str))
            parts.append(encoder.transform(table[[name]].astype(str)))
    return np.concatenate(parts, axis=1)

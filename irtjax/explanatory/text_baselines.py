"""What difficulties of new items are usually predicted by: regressions of difficulties that were fitted before."""

import warnings
from collections import Counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from irtjax.explanatory.new_items import Known, Predictor
from irtjax.tasks.glove import read_glove
from irtjax.tasks.text import tokenise

FOLDS = 5  # by which penalties and neighbours are chosen, and errors estimated
NEIGHBOURS = (5, 10, 20, 50, 100)


def ridge(features: np.ndarray) -> Predictor:
    """Ridge regression on features in standard deviations."""
    penalties = {"ridge__alpha": 10.0 ** np.arange(-1, 5)}
    return _chosen(make_pipeline(StandardScaler(), Ridge()), penalties, features)


def repeats(texts: np.ndarray) -> bool:
    """Whether there is a word in so many texts that all parts of them have it: without one, TF-IDF tells nothing."""
    words = Counter(word for text in texts for word in set(tokenise(text)))
    return max(words.values()) >= 2 * FOLDS


def tf_idf(texts: np.ndarray) -> Predictor:
    """Ridge regression on words and pairs of words, weighted by their rareness (TF-IDF)."""
    words = TfidfVectorizer(tokenizer=tokenise, token_pattern=None, lowercase=False, ngram_range=(1, 2), min_df=2)
    words.set_params(sublinear_tf=True, dtype=np.float32)
    return _chosen(make_pipeline(words, Ridge(solver="sparse_cg", tol=1e-3)), {"ridge__alpha": (1, 3, 10, 30)}, texts)


def neighbours(vectors: np.ndarray) -> Predictor:
    """The mean of the items whose vectors point most nearly the same way."""
    return _chosen(KNeighborsRegressor(metric="cosine"), {"n_neighbors": NEIGHBOURS}, vectors)


def mean_vectors(texts: np.ndarray, path: str) -> np.ndarray:
    """The mean vector of the words of each text that a file in GloVe's format has; zeros where it has none."""
    words = [tokenise(text) for text in texts]
    known = read_glove(path, {word for one in words for word in one})
    zero = np.zeros_like(next(iter(known.values())))
    return np.stack([np.mean([known.get(word, zero) for word in one] or [zero], axis=0) for one in words])


def _chosen(estimator: Any, grid: dict[str, Any], inputs: np.ndarray) -> Predictor:
    """A regression of fitted difficulties whose settings, and standard deviation, are those of cross-validation."""

    def predict(known: Known) -> tuple[np.ndarray, np.ndarray]:
        fitting = len(known.rows) * (FOLDS - 1) // FOLDS
        usable = {
            name: [value for value in values if name != "n_neighbors" or value <= fitting]
            for name, values in grid.items()
        }
        folds = KFold(FOLDS, shuffle=True, random_state=0)
        search = GridSearchCV(estimator, usable, scoring="neg_mean_squared_error", cv=folds)
        with warnings.catch_warnings(category=ConvergenceWarning, action="ignore"):
            search.fit(inputs[known.rows], known.fit.difficulty)
        found = search.predict(inputs[known.new])
        return found, np.full(found.shape, np.sqrt(-search.best_score_))

    return predict

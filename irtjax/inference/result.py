"""The result of a fit, whichever estimator made it, and the files it is written to."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.files import whole_file, writable_directory
from irtjax.responses import ResponseMatrix, counts, percent_correct

FLOAT_FORMAT = "%.6g"


@dataclasses.dataclass(frozen=True)
class Fit:
    """Item parameters and abilities on one logit scale, whose origin is the mean ability of the subjects.

    Attributes:
        responses: what was fitted; gives the order of items and subjects.
        model: "1pl".
        estimator: "svi".
        priors: "vague" or "hierarchical".
        difficulty: (I,) estimates in logits (posterior means for SVI), and `difficulty_se`, their standard
            errors (posterior standard deviations for SVI).
        ability: (J,) in logits, and `ability_se`, likewise.
        log_likelihood: in nats; for SVI conditional on the posterior means of abilities and difficulties.
        elbo: evidence lower bound in nats, the mean over the last steps.
        elbo_trace: mean ELBO of each chunk of steps.
        num_parameters: free parameters of the likelihood; for SVI one an item and one a subject.
        iterations: optimisation steps.
        converged: whether the ELBO had stopped improving when the fit ended.
        seconds: wall time, compilation included.
        seed: of the random draws.
    """

    responses: ResponseMatrix
    model: str
    estimator: str
    priors: str
    difficulty: np.ndarray
    difficulty_se: np.ndarray
    ability: np.ndarray
    ability_se: np.ndarray
    log_likelihood: float
    elbo: float
    elbo_trace: tuple[float, ...]
    num_parameters: int
    iterations: int
    converged: bool
    seconds: float
    seed: int

    def items(self) -> pd.DataFrame:
        """One row an item, the columns of `items.csv`."""
        return pd.DataFrame(
            {
                "item_id": self.responses.item_ids,
                "difficulty": self.difficulty,
                "difficulty_se": self.difficulty_se,
                "num_responses": counts(self.responses.values, axis=0)[1],
                "percent_correct": percent_correct(self.responses.values, axis=0),
            }
        )

    def subjects(self) -> pd.DataFrame:
        """One row a subject, the columns of `subjects.csv`."""
        return pd.DataFrame(
            {
                "subject_id": self.responses.subject_ids,
                "ability": self.ability,
                "ability_se": self.ability_se,
                "num_responses": counts(self.responses.values, axis=1)[1],
                "percent_correct": percent_correct(self.responses.values, axis=1),
            }
        )

    def information_criteria(self) -> dict[str, float]:
        """AIC, BIC and sample-size adjusted BIC (Sclove 1987), the sample being the J subjects.

        With k parameters and log-likelihood l: AIC = 2k - 2l, BIC = k log J - 2l, SABIC = k log((J + 2)/24) - 2l.
        """
        k, deviance, sample = self.num_parameters, -2 * self.log_likelihood, self.responses.num_subjects
        return {
            "aic": 2 * k + deviance,
            "bic": k * math.log(sample) + deviance,
            "sabic": k * math.log((sample + 2) / 24) + deviance,
        }

    def summary(self) -> dict:
        """The contents of `fit.json`."""
        # imported here: the package's __init__ imports this module
        from irtjax import versions

        return {
            "model": self.model,
            "estimator": self.estimator,
            "priors": self.priors,
            "num_subjects": self.responses.num_subjects,
            "num_items": self.responses.num_items,
            "log_likelihood": self.log_likelihood,
            "elbo": self.elbo,
            "num_parameters": self.num_parameters,
            **self.information_criteria(),
            "iterations": self.iterations,
            "converged": self.converged,
            "elbo_trace": self.elbo_trace,
            "seconds": self.seconds,
            "versions": versions(),
            "seed": self.seed,
        }


def write_fit(fit: Fit, directory: str | Path) -> None:
    """Writes `items.csv`, `subjects.csv` and `fit.json` into `directory`, which is made where missing.

    Raises:
        InputError: the directory cannot be written to.
    """
    directory = writable_directory(directory)
    for name, table in (("items.csv", fit.items()), ("subjects.csv", fit.subjects())):
        with whole_file(directory / name) as path:
            table.to_csv(path, index=False, float_format=FLOAT_FORMAT)
    with whole_file(directory / "fit.json") as path:
        path.write_text(json.dumps(fit.summary(), indent=2) + "\n")

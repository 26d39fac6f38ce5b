"""A fit in figures: its information criteria, and the contents of `fit.json`."""

import math
from typing import Any

import numpy as np

from irtjax.fits import fit_tables
from irtjax.versions import versions


def information_criteria(fit: Any) -> dict[str, float]:
    """AIC, BIC and sample-size adjusted BIC of a `Fit`, as its method of this name says."""
    k, deviance, sample = fit.num_parameters, -2 * fit.log_likelihood, fit.responses.num_subjects
    return {
        "aic": 2 * k + deviance,
        "bic": k * math.log(sample) + deviance,
        "sabic": k * math.log((sample + 2) / 24) + deviance,
    }


def record(fit: Any) -> dict[str, Any]:
    """The contents of `fit.json`, of a `Fit`."""
    return {
        "model": fit.model,
        "estimator": fit.estimator,
        "num_subjects": fit.responses.num_subjects,
        "num_items": fit.responses.num_items,
        "log_likelihood": fit.log_likelihood,
        "log_likelihood_error": fit.log_likelihood_error,
        "num_parameters": fit.num_parameters,
        **fit.information_criteria(),
        "iterations": fit.iterations,
        "converged": fit.converged,
        "status": fit.status.value,
        "population_mean": np.asarray(fit.reference.mean).tolist(),
        "population_sd": np.asarray(fit.reference.sd).tolist(),
        **fit_tables.of_populations(fit.population),
        "notes": fit.notes(),
        **fit.details,
        "seconds": fit.seconds,
        "versions": versions(),
    }

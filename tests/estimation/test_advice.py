"""What warnings advise: options that the estimator of the fit has."""

import dataclasses
import inspect
import re

import numpy as np
import pytest
from conftest import simulate

import irtjax
from irtjax.estimation import diagnostics
from irtjax.estimation.driver import Status
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.svi.fit import fit_svi

BY_SVI = Status.CONVERGED, Status.STOPPED, Status.OUT_OF_ITERATIONS  # the ends that a search has


def troubled(fit, status):
    """A fit that ended so, of steep and falling items; by MML with too few nodes, which SVI has none of."""
    slope = np.where(np.arange(fit.responses.num_items) % 2, -1, 99.0)[:, None]
    return dataclasses.replace(
        fit,
        status=status,
        parameters=fit.parameters._replace(slope=slope),
        population=fit.population._replace(sd=np.ones(1)),
        log_likelihood_error=1e9 if fit.estimator == "mml" else fit.log_likelihood_error,
        item_columns=fit.item_columns | {"discrimination_se": np.full(len(slope), 99.0)},
        details={"posteriors": "fixed nodes", "nodes": 61} | fit.details | {"without_maximum": ["i0"], "rounds": 3},
    )


@pytest.mark.parametrize(("estimator", "estimate"), [("mml", fit_mml), ("svi", fit_svi)])
def test_advice_names_options_of_the_estimator(estimator, estimate):
    responses, _, _ = simulate(150, 80)
    fit = irtjax.fit(responses, "1pl", estimator)
    names = [name for name, one in inspect.signature(estimate).parameters.items() if one.kind is one.KEYWORD_ONLY]
    advised = set()
    for status in BY_SVI if estimator == "svi" else Status:
        with pytest.warns(diagnostics.FitWarning) as caught:
            diagnostics.warn(troubled(fit, status))
        advised |= {name for one in caught for name in re.findall(r"`(\w+)`", str(one.message))}
    assert advised <= set(names), advised - set(names)
    assert {"mml": "max_iterations", "svi": "max_steps"}[estimator] in advised

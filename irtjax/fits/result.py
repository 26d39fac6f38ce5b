"""The result of a fit, whichever estimator made it."""

import dataclasses
import os
from typing import Any

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.fits import fit_files, fit_record, fit_summary, fit_tables, fit_text, item_prediction
from irtjax.fits.draws import Draws, ItemPosterior, draws_of, to_arviz
from irtjax.fits.equality import same
from irtjax.fits.joint_covariance import JointCovariance
from irtjax.fits.own_parameters import OwnParameters
from irtjax.fits.read_only import read_only
from irtjax.fits.regression import Regression
from irtjax.fits.status import Status
from irtjax.populations.groups import FittedGroups
from irtjax.populations.latent_regression import FittedLatentRegression
from irtjax.populations.normal import Population

Z_95 = 1.96  # standard errors on either side of an estimate, of its 95% interval


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """Item parameters and abilities on one logit scale.

    `repr(fit)` has its main figures in five lines, and notes; `fit.summary()` in a few more. Two fits are equal if
    every figure in them is, the seconds included. Its arrays cannot be written to.

    The origin of the scale is the mean ability of the population, and its unit is the standard deviation of the
    population. Where the model has slopes of 1 the unit is the logit, and with anchor items the scale is theirs.

    Attributes:
        responses: what was fitted, a `ResponseMatrix`, `StoredResponses` or `ScaledResponses`; gives the order of items
            and subjects.
        model: such as "2pl", or "mixed".
        estimator: "mml" or "svi".
        parameters: in slope-intercept form: `ItemParameters`, or `PredictorParameters` of other items than right/wrong.
        population: mean and standard deviation (D,) of ability, on the scale that is reported; those of each group; or
            how they depend on covariates.
        item_columns: estimates and standard errors by the names of `items.csv`, each (I,).
        ability: (J,), or (J, D) with D > 1 dimensions: EAP for MML, posterior mean for SVI.
        ability_se: posterior standard deviations, of the same shape.
        log_likelihood: in nats; marginal for MML, conditional on the posterior means for SVI.
        log_likelihood_error: what a finer integration over abilities changed, in nats: of the sum, or √Σ change² over
            the subjects where that is more; NaN where none was tried.
        num_parameters: free parameters of that likelihood.
        iterations: of the optimisation.
        status: how it ended.
        integration: how abilities were integrated out, as the argument of MML has it; None by SVI.
        unbounded: (I,) bool: items whose likelihood has no finite maximum, as far as is known.
        seconds: wall time, compilation included.
        details: further entries of `fit.json`, which depend on the estimator.
        item_posterior: of the 2PL by SVI.
        regression: of difficulties on features of the items, where these were given.
        slope_regression: of discriminations on these features, of the 2PL: of asinh a by MML, of log a by SVI.
        covariance: of the estimates of all items together, by MML on nodes with up to a thousand free parameters.
        own_parameters: what was estimated of each item by itself, by MML in one dimension and one population.
    """

    responses: Any
    model: str
    estimator: str
    parameters: Any
    population: Population | FittedGroups | FittedLatentRegression
    item_columns: dict[str, np.ndarray]
    ability: np.ndarray
    ability_se: np.ndarray
    log_likelihood: float
    log_likelihood_error: float
    num_parameters: int
    iterations: int
    status: Status
    integration: str | None
    unbounded: np.ndarray
    seconds: float
    details: dict[str, Any]
    item_posterior: ItemPosterior | None = None
    regression: Regression | None = None
    slope_regression: Regression | None = None
    covariance: JointCovariance | None = None
    own_parameters: OwnParameters | None = None

    def __post_init__(self) -> None:
        """Keeps arrays from being written to."""
        for name in set(self.__dataclass_fields__) - {"responses"}:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fit):
            return NotImplemented
        return all(same(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)

    def __hash__(self) -> int:
        return hash((self.responses, self.model, self.estimator, self.log_likelihood))

    def __repr__(self) -> str:
        return fit_summary.short(self)

    def summary(self) -> fit_text.Text:
        """All item parameters and abilities in one line each, the easiest and hardest items, and notes."""
        return fit_summary.long(self)

    def notes(self) -> list[str]:
        """What a reader of the items should know, one line each."""
        return fit_summary.notes(self)

    @checks_types
    def save(self, directory: str | os.PathLike) -> None:
        """Writes `items.csv`, `subjects.csv`, `fit.json` and `fit.npz`, from which `irtjax.load_fit` restores the fit.

        Of a fit with groups of subjects also `groups.csv`, with covariates `covariates.csv`, and with a facet
        `judges.csv`.

        Args:
            directory: made where missing.

        Raises:
            InputError: it cannot be written to.
        """
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        tables = {"items.csv": self.items(), "subjects.csv": self.subjects()}
        if isinstance(self.population, FittedGroups):
            tables[fit_files.GROUPS] = self.groups()
        if isinstance(self.population, FittedLatentRegression):
            tables[fit_files.COVARIATES] = self.covariates()
        if "facet" in self.details:
            tables[fit_files.JUDGES] = self.facets()
        fit_files.write(directory, tables, self.record(), fields)

    @checks_types
    def draws(self, num_draws: int = 1000, seed: int = 0) -> Draws:
        """Draws from the posterior of SVI: ability (draws, J), difficulty (draws, I), and discrimination in the 2PL.

        They are on the scale of the fit, from independent normal distributions (of log a and of logits in the 2PL):
        they know nothing of correlations between subjects and items. Of items that are not right or wrong they are of
        each column with an error, NaN where an item has no such parameter.

        Raises:
            InputError: the fit is not by SVI, or the numbers are out of range.
        """
        return draws_of(self, num_draws, seed)

    @checks_types
    def to_arviz(self, num_draws: int = 1000, seed: int = 0) -> Any:
        """`draws` for ArviZ (`irtjax.fits.draws.to_arviz`)."""
        return to_arviz(self.draws(num_draws, seed), self.responses.subject_ids, self.responses.item_ids)

    @property
    def converged(self) -> bool:
        """Whether the fit ended by its own criterion."""
        return self.status is Status.CONVERGED

    @property
    def maximum_likelihood(self) -> bool:
        """Whether nothing but the marginal likelihood was maximised: by MML, and no parameter of an item had a prior.

        Elsewhere log-likelihoods are below their maximum, and AIC, BIC and likelihood ratios are not what they are
        taken for.
        """
        return self.estimator == "mml" and bool(self.details.get("maximum_likelihood", False))

    @property
    def item_models(self) -> tuple[str, ...]:
        """(I,) the model of each item that is not right or wrong; of others the fit's."""
        return tuple(self.details.get("models", (self.model,) * self.responses.num_items))

    @property
    def difficulty(self) -> np.ndarray:
        """(I,) difficulties; models of one dimension only.

        Raises:
            InputError: the items of the model have none.
        """
        return self._column("difficulty")

    @property
    def difficulty_se(self) -> np.ndarray:
        """(I,) standard errors of the difficulties, as `difficulty`."""
        return self._column("difficulty_se")

    def _column(self, name: str) -> np.ndarray:
        if name not in self.item_columns:
            raise InputError(f"items of this fit have no {name}, but {', '.join(self.item_columns)}: see `items()`")
        return self.item_columns[name]

    def items(self) -> pd.DataFrame:
        """One row per item, with the columns of `items.csv`."""
        return fit_tables.items(self.responses, self.item_columns, self.extreme, self.discriminates, self.details)

    def subjects(self) -> pd.DataFrame:
        """One row per subject, with the columns of `subjects.csv`."""
        return fit_tables.subjects(self.responses, self.population, self.ability, self.ability_se)

    def groups(self) -> pd.DataFrame:
        """One row per group of subjects: `group`, `num_subjects`, `mean`, `mean_se`, `sd` and `sd_se` of ability.

        Raises:
            InputError: the fit was given no `groups`.
        """
        if not isinstance(self.population, FittedGroups):
            raise InputError("this fit was given no `groups`")
        return fit_tables.groups(self.population)

    def covariates(self) -> pd.DataFrame:
        """One row per predictor of ability: `covariate`, `coefficient`, `coefficient_se`, `p_value` and `counted_from`.

        Ability is higher by the coefficient, in logits, for one more of a number, which counts from its mean, or for
        a category ("course=morning") than for the first. The p-value is that of the Wald test, z = coefficient / se.
        With anchors the first row is the intercept. With D > 1 the columns are numbered.

        Raises:
            InputError: the fit was given no `covariates`.
        """
        if not isinstance(self.population, FittedLatentRegression):
            raise InputError("this fit was given no `covariates`")
        return fit_tables.covariates(self.population)

    @property
    def one_population(self) -> Population:
        """The population of all subjects.

        Raises:
            InputError: they are of several groups, or differ by covariates.
        """
        return Population(*self.population)

    @property
    def reference(self) -> Population:
        """The population that the scale is that of: of several groups the first, with covariates where these are 0."""
        return self.population if isinstance(self.population, Population) else self.population.first

    def facets(self) -> pd.DataFrame:
        """One row per judge, with the columns of `judges.csv`: severities, which sum to zero, and standard errors.

        Raises:
            InputError: the fit has no facet.
        """
        if "facet" not in self.details:
            raise InputError("this fit has no `facet`: fit a table with one row per response, with `facet=judge`")
        return fit_tables.facets(self.details["facet"])

    @property
    def extreme(self) -> np.ndarray:
        """(I,) bool: items that everyone or no one answered right, whose likelihood alone has no maximum."""
        right, observed = self.responses.counts(axis=0)
        return (right == 0) | (right == observed)

    @property
    def discriminates(self) -> np.ndarray | None:
        """(I,) bool: the 95% interval of the slope leaves out 0. Elsewhere b = -intercept/slope means nothing.

        False for `extreme` items. None without standard errors of slopes, and with several dimensions.
        """
        error = self.item_columns.get("discrimination_se")
        if error is None or np.isnan(error).all():
            return None
        return (np.abs(self.item_columns["discrimination"]) > Z_95 * np.nan_to_num(error, nan=np.inf)) & ~self.extreme

    def without_extremes(self) -> tuple[float, int]:
        """Log-likelihood of the responses to items that are not `extreme`, and free parameters of these.

        These depend on no rule by which extreme items are placed. Without such items they are those of the fit.
        """
        record = self.details.get("without_extremes")
        if record is None:
            return self.log_likelihood, self.num_parameters
        return record["log_likelihood"], record["num_parameters"]

    def predict_items(self, features: Any) -> pd.DataFrame:
        """Parameters of items that nobody has answered, for a fit that was given features.

        Args:
            features: of the new items, with the columns and blocks of those that the fit was given, in the same order;
                the index of a table has the ids.

        Returns:
            One row per item: `item_id`, `difficulty`, `difficulty_sd`, `discrimination` and `discrimination_sd`, which
            are standard deviations of the prediction. A discrimination is that at the mean of the scale on which it was
            regressed, its deviation by the delta method. Where all items share one its deviation is 0.

        Raises:
            InputError: the fit has no regression, or features that it cannot use.
        """
        if self.regression is None:
            raise InputError("this fit was given no `features` to predict items from")
        return item_prediction.predict(
            self.regression,
            self.slope_regression,
            features,
            names=self.details.get("feature_names", ()),
            common_slope=float(self.parameters.slope[0, 0]),
            slope_scale="asinh" if self.estimator == "mml" else "log",
            least_slope=self.details.get("least_slope", 0.0),
        )

    def information_criteria(self) -> dict[str, float]:
        """AIC, BIC and sample-size adjusted BIC (Sclove 1987), the sample being the J subjects.

        With k parameters and log-likelihood l: AIC = 2k - 2l, BIC = k log J - 2l, SABIC = k log((J + 2)/24) - 2l.
        They compare fits at their maxima; under priors (`maximum_likelihood`) only fits of the same model and priors.
        """
        return fit_record.information_criteria(self)

    def record(self) -> dict[str, Any]:
        """The contents of `fit.json`, where numbers that are not finite become null."""
        return fit_record.record(self)


@checks_types
def load_fit(directory: str | os.PathLike) -> Fit:
    """The fit that `Fit.save` or the command `irtjax fit_irt` wrote into a folder, equal to the last bit.

    Raises:
        InputError: there is none, or it is damaged.
    """
    return Fit(**fit_files.read(directory))

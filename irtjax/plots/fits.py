"""Pictures of a fit, whichever data it is of: item curves, abilities beside difficulties, information."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from irtjax.arguments import names
from irtjax.errors import InputError
from irtjax.estimation.result import Fit
from irtjax.kernels.models import information as item_information
from irtjax.plots.scale import MOST_CURVES, item_curves, wright_map
from irtjax.plots.style import COLOURS, literal, plain
from irtjax.scale.curves import empirical_curves

FEW = 24  # items whose curves are shown if none are named
BEYOND = 3.0  # logits past the abilities, where items of a Wright map are drawn at the edge
REACH = 4.0  # standard deviations of the population that information is shown over


def curves(fit: Fit, items: str | Sequence[str] | None = None) -> Figure:
    """Curves of items: the model's, and the share of right answers at each ability with its 95% band.

    Args:
        fit: of one dimension.
        items: one id or several; by default all, or 24 of them from the easiest to the hardest.

    Raises:
        InputError: an item is not in the fit, there are more than 60, or the fit has several dimensions.
    """
    _require_one_dimension(fit)
    ids = fit.responses.item_ids
    if items is None:
        order = np.argsort(fit.difficulty, kind="stable")
        chosen = order[np.unique(np.linspace(0, len(order) - 1, min(FEW, len(order))).round().astype(int))]
    else:
        items = names("items", items)
        unknown = [item for item in items if item not in ids]
        if unknown:
            raise InputError(f"item '{unknown[0]}' is not in the fit")
        if not 1 <= len(items) <= MOST_CURVES:
            raise InputError(f"{len(items)} items, expected 1 to {MOST_CURVES} that fit into a picture")
        chosen = np.array([int(np.flatnonzero(ids == item)[0]) for item in items])
    empirical = empirical_curves(fit, fit.responses.read().choose_items(chosen))
    shown = ids[chosen].tolist()
    return item_curves(shown, empirical.model, empirical, [""] * len(shown), _title(fit))


def wright(fit: Fit) -> Figure:
    """Abilities and difficulties on one scale (Wright and Stone 1979).

    Items more than three logits beyond all abilities are drawn at that edge; those without a difficulty are left out.

    Raises:
        InputError: the fit has several dimensions.
    """
    _require_one_dimension(fit)
    known = np.isfinite(fit.difficulty)
    low, high = fit.ability.min() - BEYOND, fit.ability.max() + BEYOND
    names = fit.responses.item_ids[known].tolist()
    return wright_map(fit.ability, np.clip(fit.difficulty[known], low, high), names, _title(fit))


def information(fit: Fit) -> Figure:
    """Information of the test about ability, its standard error, and where the abilities are (Birnbaum 1968).

    Raises:
        InputError: the fit has several dimensions.
    """
    _require_one_dimension(fit)
    mean, sd = float(fit.population.mean[0]), float(fit.population.sd[0])
    theta = np.linspace(mean - REACH * sd, mean + REACH * sd, 201)
    total = np.asarray(item_information(fit.parameters, theta[:, None])).sum(axis=1)
    figure = Figure(figsize=(10, 3.8))
    left, right = figure.subplots(1, 2)
    left.plot(theta, total, color=COLOURS[0])
    left.set(xlabel="ability", ylabel="information", xlim=theta[[0, -1]], ylim=(0, None))
    with np.errstate(divide="ignore"):
        right.plot(theta, total**-0.5, color=COLOURS[0], label="standard error of ability")
    right.set(
        xlabel="ability",
        ylabel="standard error",
        xlim=theta[[0, -1]],
        ylim=(0, min(2.0 * sd, 1.05 * max(total.min(), 1e-300) ** -0.5)),
    )
    people = right.twinx()
    people.hist(fit.ability, bins=40, color="0.8", zorder=0)
    people.set(yticks=[], ylabel="subjects (grey)")
    right.set_zorder(1)
    right.patch.set_visible(False)
    figure.suptitle(literal(_title(fit)))
    return plain(figure)


def _require_one_dimension(fit: Fit) -> None:
    if not isinstance(fit, Fit):
        raise InputError(f"a picture of a {type(fit).__name__}, expected a fit: irtjax.load_fit restores a saved one")
    if fit.parameters.slope.shape[1] > 1:
        raise InputError(f"a fit in {fit.parameters.slope.shape[1]} dimensions: pictures are of one")


def _title(fit: Fit) -> str:
    return f"{fit.model}, {fit.responses.num_subjects:,} subjects × {fit.responses.num_items:,} items"

"""Sections of reports on filtering and curricula, with their pictures, for the pipeline and the single binaries."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.common.settings import Settings
from experiments.common.task_defaults import TASK_DEFAULTS
from experiments.common.task_items import CrowdCost
from experiments.reports import markdown
from irtjax.comparison.rank_agreement import rank_gaps
from irtjax.plots import curricula
from irtjax.plots import filtering as filtering_plots
from irtjax.plots.difficulty import class_densities
from irtjax.plots.style import save_figure
from irtjax.selection.filter_summary import accuracies, against_control, largest_classes
from irtjax.selection.measures import never_half
from irtjax.selection.strategies import BASELINE
from irtjax.selection.summary import net_saving
from irtjax.selection.tracking import tracking_errors
from irtjax.tasks import Task, describe
from irtjax.tasks.text import lengths

NUM_TEXTS = 10


def filtering(directory: Path, centre: float) -> str:
    """Accuracy against data kept, from `filtering/` of a run directory; `centre` as `centre_of` gives it."""
    table = pd.read_csv(directory / "filtering" / "filtering.csv")
    strategies, shares = table.strategy.unique(), sorted(table.share.unique())
    save_figure(filtering_plots.accuracy_against_share(table, strategies), directory / "filtering.png")
    cells = accuracies(table)
    rows = [
        [strategy, *(markdown.percent(*cells.loc[(strategy, share)]) for share in shares)] for strategy in strategies
    ]
    return f"""## Filtering

Test accuracy (%) of {len(table)} new networks, trained on the examples that each strategy keeps. AVI keeps those of
average difficulty (|b - c| < d, with c = {centre:.2f}), AVO the extreme ones (|b - c| > d), UB the easy ones (b < d),
LB the hard ones (b > d), PCUB those that few networks answered right (pc < d), PCLB those that most answered right
(pc > d). Mean of {markdown.seeds(table.seed.nunique())}. All seeds of a strategy train on the same examples, except for
ties of difficulty; the random strategy draws new examples for each seed. Where no interval stands, all seeds gave the
same.

![Accuracy against data kept](filtering.png)

{markdown.table(["strategy", *(f"{100 * share:g}%" for share in shares)], rows)}{_against_control(table, shares)}"""


def _against_control(table: pd.DataFrame, shares: list[float]) -> str:
    """Differences of each strategy from the random choice, with intervals."""
    differences = against_control(table)
    if differences.empty:
        return ""

    def cell(difference: float, low: float, high: float) -> str:
        return f"{difference:+.1f}" + ("" if np.isnan(low) else f" ({low:+.1f} to {high:+.1f})")

    names = differences.index.unique("strategy")
    rows = [[name, *(cell(*differences.loc[(name, share)]) for share in shares)] for name in names]
    return f"""

The same against the random choice, in points, with the 95% interval of the difference (Welch):

{markdown.table(["strategy", *(f"{100 * share:g}%" for share in shares)], rows)}"""


def class_balance(directory: Path) -> str:
    """Which classes each strategy keeps, from `filtering/kept.csv`."""
    table = pd.read_csv(directory / "filtering" / "kept.csv", dtype={"class": str})
    save_figure(filtering_plots.class_balance(table), directory / "class_balance.png")
    shares = sorted(table.share.unique())
    most = largest_classes(table)
    cells = [f"{100 * row.share_of_kept:.0f}% ({markdown.inline(row['class'])})" for _, row in most.iterrows()]
    by_both = pd.Series(cells, most.index)
    rows = [[name, *(by_both[name, share] for share in shares)] for name in table.strategy.unique()]
    return f"""## Class balance of what is kept

The largest class among the examples kept, and its share of them. Classes differ in difficulty, so that a filter by
difficulty is in part a filter by class.

![Balance of classes](class_balance.png)

{markdown.table(["strategy", *(f"{100 * share:g}%" for share in shares)], rows)}"""


def difficulties(directory: Path, task: Task, items: pd.DataFrame) -> str:
    """Density of the difficulties of the training examples, with one line per class."""
    title = f"{task.name}: difficulty of the training examples, by class"
    figure = class_densities(items.difficulty.to_numpy(), task.train.labels, task.classes, title)
    save_figure(figure, directory / "densities.png")
    return "![Difficulty by class](densities.png)"


def curriculum(settings: Settings, directory: Path) -> str:
    """Accuracy, data used and changes against the baseline, from `curriculum/` of a run directory."""
    table = pd.read_csv(directory / "curriculum" / "curriculum.csv")
    summary = pd.read_csv(directory / "curriculum" / "summary.csv")
    save_figure(curricula.curricula(table, table.strategy.unique()), directory / "curriculum.png")
    columns = {
        "strategy": "{strategy}",
        "best epoch": _interval("best_epoch", ".1f"),
        "examples used": _interval("examples_used", ",.0f"),
        "answered": "{items_asked:,.0f}",
        "test accuracy (%)": lambda row: markdown.percent(row["test_accuracy"], row["test_accuracy_ci"]),
        "change (percentage points)": _interval("accuracy_change_points", "+.2f"),
    }
    of_others = summary.accuracy_change_points.where(summary.strategy != BASELINE)
    return f"""## Curriculum

Examples are counted up to the best validation epoch, and accuracies are those at that epoch. Mean of
{markdown.seeds(settings.curriculum_seeds)}; changes are against the fully supervised baseline from the same initial
weights. The column "answered" counts the training examples that the network was asked, up to that epoch, for the
estimates of its ability. Before each epoch, DDaCLAE and its variants estimate the network's ability by
{settings.ability.upper()} from its answers {_probe(settings, table)}.{_stalled(table)}

![Gain over the baseline, accuracy and data in use against examples used](curriculum.png)

{markdown.table_of(summary.assign(accuracy_change_points=of_others), columns)}"""


def _interval(field: str, form: str) -> Callable[[dict[str, Any]], str]:
    """A cell with the mean in a field and its interval in the one beside it."""
    return lambda row: markdown.with_interval(row[field], row[f"{field}_ci"], form)


def monitor(directory: Path, number: int) -> str:
    """Ability and accuracy by a few adaptive items beside the true accuracies; empty if there was no monitor."""
    if not number:
        return ""
    table = pd.read_csv(directory / "curriculum" / "monitor.csv")
    save_figure(curricula.monitored(table, table.strategy.unique(), number), directory / "monitor.png")
    header = ["strategy", "mean error", "standard error claimed", "r, training", "r, validation"]
    rows = [[row[0], *(f"{value:.3f}" for value in row[1:])] for row in tracking_errors(table).itertuples()]
    return f"""## Do {number} items track a network?

After each epoch, each network is asked {number} training examples, one by one: each the one that tells most, given the
answers before it. Classes keep their shares. What is predicted is the accuracy on all training examples. The mean error
is against the true one, and r are correlations over the epochs of a network, with its true accuracies on the training
and on the validation examples; nan where one of these never changed. Networks are trained on the examples that they are
asked: where a network overfits, prediction and validation accuracy part.

![Ability, predicted and true accuracy against epoch](monitor.png)

{markdown.table(header, rows)}"""


def _probe(settings: Settings, table: pd.DataFrame) -> str:
    asked = table.items_asked[table.items_asked > 0]
    if settings.probe == "all" or asked.nunique() <= 1:
        return "to all training examples"
    return (
        f"to a sample of\n{asked.min():,} to {asked.max():,} training examples, large enough that the share of data to "
        f"select has a standard\nerror of {100 * settings.probe_error:g}%"
    )


def _stalled(table: pd.DataFrame) -> str:
    """Says how many networks never came to select half of the data, which can happen if all they select is easy."""
    networks = table[table.strategy == "DDaCLAE"]
    stalled = never_half(networks)
    if not stalled:
        return ""
    return f" With DDaCLAE, {stalled} of {networks.seed.nunique()}\nnetworks never came to select half of the data."


def against_published(settings: Settings, directory: Path) -> str:
    """The tables of the published study, and measures that wander less, relative to the baseline."""
    summary = pd.read_csv(directory / "curriculum" / "summary.csv")
    if set(summary.strategy) == {BASELINE}:
        return ""
    save_figure(curricula.forest(summary), directory / "forest.png")
    published = TASK_DEFAULTS[settings.task].published
    best, along = [], []
    for row in summary[summary.strategy != BASELINE].itertuples():
        size = markdown.times(row.examples_ratio, row.examples_ratio_low, row.examples_ratio_high)
        accuracy = markdown.with_interval(row.accuracy_change_percent, row.accuracy_change_percent_ci, "+.2f")
        study = published.get(row.strategy)
        beside = ("", "") if study is None else (f"{1 + study.examples_used / 100:.2f}", f"{study.test_accuracy:+.2f}")
        cells = [row.strategy, size, _saving(row.examples_detectable), accuracy]
        best.append([*cells[:2], beside[0], *cells[2:], beside[1]] if published else cells)
        changes = [f"within_{budget}_change_points" for budget in (10, 25, 50, 100)]
        within = [markdown.with_interval(getattr(row, name), getattr(row, f"{name}_ci"), "+.2f") for name in changes]
        along.append(
            [
                row.strategy,
                markdown.times(row.reach_ratio, row.reach_ratio_low, row.reach_ratio_high),
                f"{row.reached} of {row.seeds}",
                _saving(row.reach_detectable),
                markdown.with_interval(row.area_change_points, row.area_change_points_ci, "+.2f"),
                *within,
            ]
        )
    header = ["strategy", "training size (times)", "smallest detectable saving", "test accuracy (change in %)"]
    if published:
        header = [*header[:2], "published", *header[2:], "published"]
    measures = ["strategy", "examples until 99% (times)", "reached", "smallest detectable saving", "mean on the way"]
    return f"""## Relative to the baseline

Training size is the number of examples used up to the best validation epoch, as a multiple of the baseline's: 0.5 is
half as many, 1 as many. It is the geometric mean over seeds, with its 95% interval in brackets. The change of the test
accuracy is in percent of the baseline's accuracy, not in percentage points. Both compare networks that began with the
same weights, but for those of the strategy no-effect, the null control: the baseline with other seeds. The smallest
detectable saving is the one that a t test detects with 80% power, given the spread of these
seeds.{" Published: Lalor and Yu 2020." if published else ""}

![Differences from the baseline with 95% intervals](forest.png)

{markdown.table(header, best)}

## Along the way

Which epoch is the best is partly chance. So here are the examples until the validation accuracy, smoothed over three
epochs, first was 99% of the baseline's best (too few where some seeds never reached it); the validation accuracy on
average over the examples that the baseline uses in all; and the test accuracy after 10, 25, 50 and 100% of these, empty
where its first epoch uses more. Changes are in percentage points, against the baseline.

{markdown.table([*measures, "10%", "25%", "50%", "100%"], along)}"""


def _saving(percent: float) -> str:
    return "" if np.isnan(percent) else f"{percent:.0f}%"


def cost(directory: Path, crowd: CrowdCost | None, strategy: str = "DDaCLAE") -> str:
    """What the difficulties cost, and what the strategy saved by using them."""
    summary = pd.read_csv(directory / "curriculum" / "summary.csv")
    if strategy not in set(summary.strategy):
        return ""
    fewer, asked, saved, certain = net_saving(summary, strategy)
    doubt = "" if certain else ", a difference that may be chance: the 95% interval of the ratio includes 1"
    text = f"""## What the difficulties cost

Until its best epoch, {strategy} trained on {abs(fewer):,.0f} examples {"fewer" if fewer >= 0 else "more"} than the
baseline, on average over the seeds{doubt}. To estimate its ability it answered {asked:,.0f} examples, each at a third
of the cost of training on it. Together this is {"a saving" if saved >= 0 else "a loss"} of {abs(saved):,.0f} examples
per training."""
    if crowd is None:
        return text + " What the crowd cost is unknown, because the items are not in its run directory."
    if saved > 0 and certain:
        times = f"{crowd.examples / saved:,.0f} trainings of such a network save as much as the crowd cost"
    else:
        number = "no number" if saved <= 0 else "it is not certain that any number"
        times = f"{number} of trainings saves as much as the crowd cost"
    return (
        f"{text} The crowd of {crowd.networks:,} networks was trained on {crowd.examples:,} examples in all; with the "
        f"fit of IRT this took {crowd.seconds / 60:.1f} minutes: {times}."
    )


def discrepancies(task: Task, items: pd.DataFrame) -> str:
    """Texts whose difficulty and length differ most in rank."""
    words = lengths(task.train)
    table = pd.DataFrame(
        {
            "text": describe(task, task.train),
            "label": [task.classes[label] for label in task.train.labels],
            "difficulty": items.difficulty.to_numpy(),
            "words": words,
        }
    )
    order = np.argsort(rank_gaps(table.difficulty.to_numpy(), words), kind="stable")
    parts = [
        f"""## Where difficulty and length disagree

Spearman correlation of difficulty and number of words over the {len(table):,} training examples:
{table.difficulty.corr(table.words, method="spearman"):+.3f}."""
    ]
    for title, rows in (("short and hard", order[::-1][:NUM_TEXTS]), ("long and easy", order[:NUM_TEXTS])):
        columns = {title: "{text!i}", "label": "{label!i}", "difficulty": "{difficulty:.2f}", "words": "{words}"}
        parts.append(markdown.table_of(table.iloc[rows], columns))
    return "\n\n".join(parts)

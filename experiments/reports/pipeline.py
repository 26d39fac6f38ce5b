"""The report of a pipeline run: pictures and `report.md`, made from the files of its stages."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.common.settings import Settings
from experiments.reports import document, markdown, sections
from experiments.stages.difficulty import load_items
from irtjax.plots.difficulty import contact_sheet, densities
from irtjax.plots.style import save_figure
from irtjax.selection.filtering import centre_of
from irtjax.svi.model import PRIORS
from irtjax.tasks import Task, describe
from irtjax.tasks.task import SPLITS

NUM_TEXTS = 10


def write(settings: Settings, task: Task, directory: Path) -> None:
    """Writes the pictures and `report.md` of a pipeline into its run directory."""
    parts = [_overview(task, directory), _difficulty(settings, task, directory)]
    if settings.mislabelled > 0:
        parts.append(_mislabelled(settings, directory))
    items = load_items(directory / "difficulty", settings.priors, task.train.ids)
    centre = centre_of(items.difficulty.to_numpy(), settings.centre)
    parts += [sections.filtering(directory, centre), sections.curriculum(settings, directory)]
    parts.append(document.how_it_was_made(dataclasses.asdict(settings), directory))
    document.save(parts, directory)


def _overview(task: Task, directory: Path) -> str:
    members = pd.read_csv(directory / "crowd" / "members.csv")
    quantiles = members.accuracy_test.quantile([0, 0.25, 0.5, 0.75, 1])
    spread = ", ".join(f"{100 * value:.1f}%" for value in quantiles)
    sizes = ", ".join(f"{len(task.split(name).labels):,} {name}" for name in SPLITS)
    architectures = ", ".join(f"`{name}`" for name in dict.fromkeys(members.network))
    widths = " to ".join(f"{width}" for width in sorted({members.width.min(), members.width.max()}))
    return f"""# {task.name}: from a crowd to a curriculum

{len(members)} networks ({architectures}, {widths} hidden units) were trained on subsets of
{members.subset_size.min():,} to {members.subset_size.max():,} training examples with up to
{100 * members.corruption_rate.max():.0f}% corrupted labels. Then they answered all items ({sizes}). Minimum, quartiles
and maximum of their test accuracies: {spread}."""


def _difficulty(settings: Settings, task: Task, directory: Path) -> str:
    folder = directory / "difficulty"
    items = pd.read_csv(folder / settings.priors / "items.csv")
    subjects = pd.read_csv(folder / settings.priors / "subjects.csv")
    fits = [{"priors": priors} | json.loads((folder / priors / "fit.json").read_text()) for priors in PRIORS]
    reliability = json.loads((folder / "reliability.json").read_text())
    save_figure(
        densities(
            {"ability of the networks": subjects.ability, "difficulty of the items": items.difficulty},
            f"{task.name}: abilities and difficulties on one scale",
        ),
        directory / "densities.png",
    )
    extremes = _extreme_images if task.train.texts is None else _extreme_texts
    columns = {
        "priors": "{priors}",
        "ELBO": "{elbo:.1f}",
        "log-likelihood": "{log_likelihood:.1f}",
        "steps": "{iterations}",
        "converged": lambda fit: "yes" if fit["converged"] else "**no**",
    }
    return f"""## Difficulty

A network of ability θ answers an item of difficulty b correctly with probability σ(θ - b): 50% if θ = b, 73% if θ is
one logit above b, 88% if it is two logits above. The mean ability of the crowd is 0.

![Abilities and difficulties](densities.png)

{extremes(settings, task, directory)}

{markdown.table_of(pd.DataFrame(fits), columns)}

The pictures use the {settings.priors} priors. Difficulties under the two kinds of priors have a Spearman correlation of
{reliability["vague_against_hierarchical_spearman"]:.4f}. **Split-half reliability:** the difficulties from two disjoint
halves of the crowd ({reliability["subjects_per_half"]} networks each) have a Spearman correlation of
**{reliability["split_half_spearman"]:.3f}**."""


def _extreme_images(settings: Settings, task: Task, directory: Path) -> str:
    """A picture of the easiest and the hardest image of each class."""
    labels, ids = (np.concatenate([getattr(task.split(name), field) for name in SPLITS]) for field in ("labels", "ids"))
    save_figure(
        contact_sheet(
            np.concatenate([task.split(name).inputs for name in SPLITS]),
            labels,
            task.classes,
            load_items(directory / "difficulty", settings.priors, ids).difficulty.to_numpy(),
            f"{task.name}: the easiest and the hardest item of each class (difficulty in logits)",
        ),
        directory / "contact_sheet.png",
    )
    return "![The easiest and the hardest item of each class](contact_sheet.png)"


def _extreme_texts(settings: Settings, task: Task, directory: Path) -> str:
    """A table of the easiest and the hardest texts."""
    table = pd.concat(
        pd.DataFrame({"text": describe(task, split), "label": split.labels, "item_id": split.ids})
        for split in map(task.split, SPLITS)
    )
    items = load_items(directory / "difficulty", settings.priors, table.item_id.to_numpy())
    table = table.assign(difficulty=items.difficulty.to_numpy(), right=items.proportion_correct.to_numpy())
    table = table.sort_values("difficulty", kind="stable")
    parts = []
    for title, rows in (("easiest", table.head(NUM_TEXTS)), ("hardest", table.tail(NUM_TEXTS)[::-1])):
        columns = {
            f"the {NUM_TEXTS} {title}": "{text!i}",
            "label": lambda row: markdown.inline(task.classes[row["label"]]),
            "difficulty": "{difficulty:.2f}",
            "right": "{right:.0%}",
            "item": "{item_id!i}",
        }
        parts.append(markdown.table_of(rows, columns))
    return "\n\n".join(parts)


def _mislabelled(settings: Settings, directory: Path) -> str:
    folder = directory / "mislabelled"
    detection = json.loads((folder / "detection.json").read_text())
    table = pd.read_csv(folder / "mislabelled.csv")
    save_figure(
        densities(
            {
                "right label": table.difficulty[table.flipped == 0].to_numpy(),
                "flipped label": table.difficulty[table.flipped == 1].to_numpy(),
            },
            "Difficulty of training items with right and with flipped labels",
            "difficulty (logits)",
        ),
        directory / "mislabelled.png",
    )
    return f"""## Mislabelled examples

{100 * settings.mislabelled:g}% of the training labels ({detection["num_flipped"]:,} of {detection["num_items"]:,}) were
flipped, and a second crowd was trained on the result. Difficulty ranks flipped items above the others with
**AUC {detection["auc"]:.4f}**: of the {detection["num_flipped"]:,} hardest items,
{detection["flipped_among_as_many_hardest"]:,} have a flipped label.

![Difficulty of right and flipped labels](mislabelled.png)"""

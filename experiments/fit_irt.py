r"""Fits an item response model to a file of scored responses.

Reads responses, right and wrong or grades, and writes items.csv, subjects.csv, fit.json and, of up to 60 subjects,
ranking.png. The format of the file is recognised by its ending or its content: CSV matrix (a header of item ids, the
subject id first in each row, cells 0, 1 or empty), long CSV (subject_id, item_id, response), py-irt JSON lines, Parquet
or NPZ. A folder is that of shards, or what a harness wrote about language models: the samples of lm-evaluation-harness,
the lines of every_eval_ever, logs of Inspect, HELM's statistics, results of EvalPlus. Grades, categories, counts and
shares are fitted by --model=graded, gpcm, pcm, rsm, nominal, binomial or ordered_beta; --model=auto goes by the data.

  python -m experiments.fit_irt --responses=responses.csv --model=2pl --output_dir=runs/fit
  python -m experiments.fit_irt --responses=responses.csv --model=1pl --estimator=svi --output_dir=runs/fit
  python -m experiments.fit_irt --responses=grades.csv --model=graded --output_dir=runs/fit
  python -m experiments.fit_irt --responses=grades.csv --model=pcm --facet=judge --output_dir=runs/fit
  python -m experiments.fit_irt --responses=grades.csv --model=graded --estimator=svi --output_dir=runs/fit

On 2 CPU cores a fit to 1,000 people and 100 items takes four seconds, mostly start and compilation. A fit to
1,000 networks and 550,000 items takes a quarter of a minute by mml and one and a half by svi, reading the file aside.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path, define_paths
from irtjax import choices
from irtjax.svi import choices as svi

define_paths(
    "responses",
    "file or folder of scored responses; several, with commas, are those of other subjects to these items",
    required=True,
)
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_trials()
shared_flags.define_transpose()
define_output_dir()
flags.DEFINE_enum(
    "model",
    "2pl",
    choices.MODELS,
    f"item response model: of right and wrong answers {', '.join(choices.OF_RIGHT_WRONG)} (svi fits the 1pl and the "
    "2pl); of other responses graded and what follows; auto goes by the responses",
)
shared_flags.define_grades()
shared_flags.define_repeats()
shared_flags.define_sparse()
flags.DEFINE_string(
    "facet", None, "column of a table with one row per response that says who judged: adds the severity of each judge"
)
flags.DEFINE_integer("dims", 1, "dimensions of ability (mml)", lower_bound=1)
flags.DEFINE_enum(
    "estimator", "mml", choices.ESTIMATORS, "marginal maximum likelihood or stochastic variational inference"
)
flags.DEFINE_enum(
    "priors",
    "auto",
    ["auto", "none", *svi.PRIORS],
    "priors: auto, or none for plain maximum likelihood (mml); auto, hierarchical or vague (svi)",
)
flags.DEFINE_bool("asymptote_priors", True, "priors on the asymptotes of 3pl and 4pl (mml)")
flags.DEFINE_list(
    "slope_prior",
    ["auto"],
    "normal prior on slopes: mean,sd, none, or auto: estimated where the responses leave slopes open (mml)",
)
flags.DEFINE_enum(
    "integration",
    "auto",
    choices.INTEGRATION,
    "abilities are integrated out on shared nodes, around each posterior, or normal (mml)",
)
flags.DEFINE_enum("start", svi.BEST, svi.STARTS, "where svi begins; best: at the one of the highest ELBO")
flags.DEFINE_integer("batch_subjects", None, "subjects in a step; default: all (svi)")
flags.DEFINE_integer("batch_items", None, "items in a step; default: all (svi)")
flags.DEFINE_integer("batch_answers", None, "answers in a step of a fit by single answers; default: all (svi)")
flags.DEFINE_string(
    "groups",
    None,
    "several populations of subjects: TABLE.csv:COLUMN has the group of each; ids are in its first column (mml)",
)
flags.DEFINE_list(
    "free_by_group", [], "items whose parameters differ by group: item, item:difficulty or item:slope (--groups)"
)
flags.DEFINE_string(
    "covariates",
    None,
    "what the mean ability of subjects depends on: TABLE.csv:COLUMN,COLUMN; ids are in its first column (mml)",
)
define_path("anchors", "items.csv of items whose parameters are held fixed (mml)")
shared_flags.define_guessing()
flags.DEFINE_enum(
    "extremes", "keep", ["keep", "refuse"], "items that everyone or no one answered right: under a prior, or not (mml)"
)
shared_flags.define_guard()
shared_flags.define_tensorboard()
flags.DEFINE_bool(
    "misfit", False, "add infit and outfit to items.csv and subjects.csv, and lz to subjects.csv (one dimension)"
)
flags.DEFINE_integer("seed", 0, "seed of every random draw (svi)", lower_bound=0, upper_bound=2**31 - 1)
flags.DEFINE_integer(
    "max_iterations",
    4000,
    "most EM steps (mml), or optimisation steps in rounds of 10 to 100 (svi)",
    lower_bound=1,
)
shared_flags.define_processes()


def main() -> None:
    """Reads responses, fits the model and writes the results."""
    from experiments.commands import fit_irt  # here, as `--help` and wrong flags need not wait for JAX

    fit_irt.run()


if __name__ == "__main__":
    app.run(main)

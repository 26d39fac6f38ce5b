r"""How hard will a new item be? Predicts difficulties from texts, and fits them from texts and responses at once.

  python -m experiments.predict_difficulty --responses=transformers.csv --texts=snli_test.csv \
    --pretrained=all-MiniLM-L6-v2 --output_dir=runs/predicted

Fits the Rasch model with b_i = f(x_i) + residual, where x are vectors of a pre-trained encoder, the number of words and
further columns of the table. Of counts it is the same model of each trial; of grades b_i is the mean of the thresholds
of the graded model. Writes report.md, items.csv (one row per item), predictors.csv (how good each way of predicting is,
on items that were held out), curve.csv (the error against responses per item; not of grades), pictures, and `fit/`.
--new_items has the texts of items that nobody has answered; their difficulties are in new_items.csv.

On 2 CPU cores, some 10 minutes for 90 subjects and 10,000 items.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.choices import AUTO

define_path("responses", "file or folder of scored responses", required=True)
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_transpose()
shared_flags.define_trials()
shared_flags.define_grades()
flags.DEFINE_enum(
    "model",
    AUTO,
    [AUTO, "rasch", "graded", "binomial"],
    "rasch, graded of grades, binomial of counts; auto goes by the responses",
)
define_path("texts", "CSV of ids and texts; items that it does not have are left out", required=True)
flags.DEFINE_list("text_columns", [], "columns of text, one or two (default: text, or premise and hypothesis)")
flags.DEFINE_list("covariates", [], "further columns of --texts to predict from; numbers, or words as categories")
define_path("pretrained", "folder of a BERT-type encoder, whose vectors of the texts are features")
define_path("glove", "file of word vectors, whose mean over a text is one of the baselines")
define_path("new_items", "CSV like --texts, of items without responses, whose difficulties are predicted")
flags.DEFINE_integer("folds", 5, "parts of the items that are held out in turn", lower_bound=2, upper_bound=100)
flags.DEFINE_integer("shown", 8, "items in each table of the report", lower_bound=1, upper_bound=1000)
flags.DEFINE_integer("seed", 0, "of folds and of responses kept", lower_bound=0, upper_bound=2**31 - 1)
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, computes features, holds out, fits and writes the report."""
    from experiments.commands import predict_difficulty  # here, as `--help` and wrong flags need not wait for JAX

    predict_difficulty.run()


if __name__ == "__main__":
    app.run(main)

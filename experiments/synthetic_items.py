r"""Can items of a chosen difficulty be made? A generator draws images of a class, as hard as they are asked to be.

It learns from the training images of a task and from a crowd's difficulties of them (--items). Images of each class are
asked for at difficulties from the 5% to the 95% point of these; a control has learned from the same difficulties, dealt
out anew among the images of a class. A fresh crowd says how hard they are:

  python -m experiments.synthetic_items --task=digits --items=runs/digits/fit/items.csv --output_dir=runs/synthetic
  python -m experiments.crowd --task=digits --stop_on=train --extra_items=runs/synthetic/generated.npz --seed=1 \
    --output_dir=runs/fresh
  python -m experiments.compare_difficulty --items=runs/synthetic/items.csv \
    --responses=runs/fresh/crowd/responses_extra.npz --names=asked,crowd --output_dir=runs/asked

Writes generated.npz (images, labels and item_id), items.csv and control.csv (the difficulty asked for of each image,
and whether a support vector machine gives it the class asked for), levels.csv and generated.png. Method and results:
docs/results/synthetic_items.md. On 2 CPU cores, a quarter of a minute for the digits.
"""

from absl import flags

from experiments.common import app, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir, define_path

define_output_dir()
define_path("items", "items.csv with the difficulty of every training image", required=True)
flags.DEFINE_integer("levels", 7, "difficulties that are asked for, equally spaced", lower_bound=2, upper_bound=1000)
flags.DEFINE_integer("per_level", 20, "images of each class at each of them", lower_bound=1, upper_bound=100_000)
flags.DEFINE_integer("latent", 2, "numbers that an image is drawn from, beside class and difficulty", 1, 1024)
flags.DEFINE_integer("hidden", 256, "units of the hidden layer of the generator", 1, 65_536)
USED = frozenset({"dataset", "train_examples", "image_size", "seed"})
task_flags.define_flags(USED)
shared_flags.define_guard()


def main() -> None:
    """Makes the generators, asks them for images, and writes these."""
    from experiments.commands import synthetic_items  # here, as `--help` and wrong flags need not wait for JAX

    synthetic_items.run()


if __name__ == "__main__":
    app.run(main)

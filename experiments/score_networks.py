r"""How able are networks on the scale of people? Scores the answers of crowds to the items of one or more scales.

  python -m experiments.score_networks --scales=runs/scale/items.csv --people=runs/scale/subjects.csv \
    --crowds=runs/lstm,runs/nse --output_dir=runs/networks

A scale is an items.csv of experiments.build_scale or experiments.fit_irt; a crowd is a run directory of
experiments.crowd, whose networks have answered the items (--extra_items gives them the texts). Writes report.md,
networks.csv (one row per network and scale) and networks.png.

On 2 CPU cores, a quarter of a minute.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir
from irtjax.scoring.choices import METHODS

flags.DEFINE_list("scales", [], "items.csv of each scale, or the folder of a saved fit")
flags.DEFINE_list("scale_names", [], "what to call the scales, in their order (default: their paths)")
flags.DEFINE_list(
    "people", [], "subjects.csv with the abilities of the people of each scale, in the order of --scales; or none"
)
flags.DEFINE_list("crowds", [], "run directories of experiments.crowd")
flags.DEFINE_list("names", [], "what to call the crowds, in their order (default: their paths)")
flags.DEFINE_enum("method", "eap", METHODS, "maximum likelihood, posterior mode or mean")
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Scores every network on every scale and writes the report."""
    from experiments.commands import score_networks  # here, as `--help` and wrong flags need not wait for JAX

    score_networks.run()


if __name__ == "__main__":
    app.run(main)

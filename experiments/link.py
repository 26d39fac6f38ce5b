r"""Two tests on one scale by their common items: linking constants, items of the other test, tables of equated scores.

Writes items.csv (of the other test, on the scale of the base), common_items.csv, equated_scores.csv, link.json.

  python -m experiments.link --base=runs/fit --other=runs/other --output_dir=runs/link
  python -m experiments.link --base=items.csv --other=other_items.csv --method=haebara --output_dir=runs/link

Tests are folders of fits, as experiments.fit_irt writes them, or tables like items.csv. Fits give standard errors.
On 2 CPU cores, some seconds.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.groups.choices import LINK_METHODS

define_path("base", "folder of a fit, or items.csv, whose scale is kept", required=True)
define_path("other", "the same of the test that is put on it", required=True)
flags.DEFINE_enum("method", "stocking_lord", LINK_METHODS, "by characteristic curves, or by moments")
flags.DEFINE_bool("symmetric", True, "compare curves on both scales (haebara, stocking_lord)")
flags.DEFINE_enum("weights", "normal", ["normal", "uniform"], "of abilities (haebara, stocking_lord)")
flags.DEFINE_bool("robust", False, "leave out common items that drift, the worst first")
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, links, writes."""
    from experiments.commands import link  # here, as `--help` and wrong flags need not wait for JAX

    link.run()


if __name__ == "__main__":
    app.run(main)

"""`irtjax <command>`: the binaries from anywhere, without a checkout."""

import ast
import difflib
import os
import runpy
import sys
from importlib.metadata import version
from pathlib import Path

from experiments.common.interrupt import end_on_ctrl_c
from experiments.common.streams import sound_streams

COMMANDS = (  # each the name of its file
    "fit_irt",
    "score",
    "audit",
    "dif",
    "item_fit",
    "link",
    "compare_models",
    "compare_difficulty",
    "predict_difficulty",
    "small_benchmark",
    "adaptive_test",
    "build_scale",
    "score_networks",
    "crowd",
    "pipeline",
    "filtering",
    "curriculum",
    "training_size",
    "soft_labels",
    "joint_training",
    "synthetic_items",
    "prepare",
)
FORMER = {  # names that go with the next release
    "fit": "fit_irt",
    "compare": "compare_models",
    "difficulty": "compare_difficulty",
    "predict": "predict_difficulty",
    "small": "small_benchmark",
    "adaptive": "adaptive_test",
    "scale": "build_scale",
    "networks": "score_networks",
    "size": "training_size",
    "soft": "soft_labels",
    "joint": "joint_training",
}


def main() -> None:
    """Runs the command that the first argument names, with the other arguments as its flags."""
    end_on_ctrl_c()
    with sound_streams():
        _run()


def _run() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else "--help"
    command = FORMER.get(word, word)
    if command in ("--help", "-h", "help") and len(sys.argv) < 3:
        print(overview())
    elif command in ("--help", "-h", "help"):
        sys.argv = [sys.argv[0], sys.argv[2], "--help"]
        _run()
    elif command == "--version":
        print(f"irtjax {version('irtjax')}")
    elif command not in COMMANDS:
        close = difflib.get_close_matches(command, COMMANDS, 1)
        meant = f": did you mean {close[0]}?" if close else f", expected one of {', '.join(COMMANDS)}"
        print(f"error: no command {command!r}{meant}", file=sys.stderr)
        sys.exit(2)
    else:
        sys.argv = [f"irtjax {command}", *sys.argv[2:]]
        sys.path.append(os.getcwd())  # as with `python -m`, for networks of the user's own
        runpy.run_module(f"experiments.{command}", run_name="__main__")


def overview() -> str:
    """The commands, each with the first line of its docstring, read without importing it."""
    lines = ["Item Response Theory at machine-learning scale.", "", "usage: irtjax COMMAND [flags]", ""]
    for command in COMMANDS:
        code = Path(__file__).parents[1].joinpath(f"{command}.py").read_text(encoding="utf-8")
        purpose = (ast.get_docstring(ast.parse(code)) or "").splitlines()[0]
        lines.append(f"  {command:<20}{purpose}")
    return "\n".join([*lines, "", "irtjax COMMAND --help lists its flags."])

"""Command-line experiments; run with `python -m experiments.<name>`, or `irtjax <command>`."""

import sys

from experiments.common import hash_seed
from experiments.common.interrupt import end_on_ctrl_c

if sys.argv[:1] == ["-m"]:  # a command is about to be imported, which takes seconds
    hash_seed.fix()
    end_on_ctrl_c()

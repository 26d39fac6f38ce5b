"""Command-line experiments; run with `python -m experiments.<name>`, or `irtjax <command>`."""

import sys

from experiments.common.interrupt import end_on_ctrl_c

if sys.argv[:1] == ["-m"]:  # a command is about to be imported, which takes seconds
    end_on_ctrl_c()

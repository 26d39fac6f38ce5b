"""The seed of Python's hashes, which several processes must have in common.

The order of sets depends on it, and with that the order in which JAX and NumPyro put the operations of a program. The
processes of one job must compile the same programs: others would exchange different numbers, without a word.
"""

import os
import sys

ASKS = ("--coordinator", "--distributed")  # flags that make a command one of several processes


def fix() -> None:
    """Starts Python anew with a fixed seed, if the command line asks for several processes and it has none."""
    several = any(argument.lstrip("-").startswith(tuple(flag.lstrip("-") for flag in ASKS)) for argument in sys.argv)
    arguments = sys.orig_argv
    if "--" in arguments or not several or os.environ.get("PYTHONHASHSEED", "random") != "random":
        return
    os.execve(sys.executable, [sys.executable, *arguments[1:]], os.environ | {"PYTHONHASHSEED": "0"})

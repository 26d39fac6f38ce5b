"""The one exception for bad input from outside."""


class InputError(ValueError):
    """Input that the caller must mend: a file, a flag or an array.

    The message is one line that names the place (file, row, column or flag) and what to do. The experiment
    binaries print it and exit with status 2.
    """

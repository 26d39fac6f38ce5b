"""The one exception for bad input from outside."""


class InputError(ValueError):
    """Input that the caller must mend: a file, an argument or an array.

    The message is one line that names the place (file, row, column or argument) and what to do. Arguments that could
    mend it stand in backticks. The experiment binaries show those as flags, print the line and exit with status 2.
    """

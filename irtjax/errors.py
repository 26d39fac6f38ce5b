"""The one exception for bad input from outside."""

import unicodedata


def printable(text: str) -> str:
    """A text in one line, with control characters (and those that turn the direction of writing) as escapes.

    Ids may hold line breaks and the codes that move a terminal's cursor: printed raw, they could fake other lines.
    """
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _UNSEEN else character
        for character in text
    )


_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class InputError(ValueError):
    """Input that the caller must mend: a file, an argument or an array.

    The message is one line that names the place (file, row, column or argument) and what to do. Arguments that could
    fix it stand in backticks. The experiment binaries show those as flags, print the line and exit with status 2.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class NotScoredError(InputError):
    """Responses that are neither right nor wrong, or several of one subject to one item."""

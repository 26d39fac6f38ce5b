"""How an estimation ended, and what to do about it."""

import enum


class Status(enum.StrEnum):
    """How an estimation ended, by name.

    Attributes:
        advice: what to do about it, with places for `{iterations}`, the option `{limit}` of their number, the `{items}`
            concerned, what keeps slopes finite (`{steadier}`), and `{rounds}` of regressions; empty where nothing is.
    """

    advice: str

    def __new__(cls, name: str, advice: str = "") -> "Status":
        """A status; its value is the name."""
        status = str.__new__(cls, name)
        status._value_, status.advice = name, advice
        return status

    CONVERGED = "converged"
    STOPPED = "stopped"  # by the caller
    STALLED = (  # no smaller change in `PATIENCE` steps
        "stalled",
        "not converged after {iterations}, of which the last led nowhere: ask whether the data support the model",
    )
    OUT_OF_ITERATIONS = (
        "out of iterations",
        "not converged after {iterations}: raise `{limit}`, or ask whether the data support the model",
    )
    SHORT = (  # by the observed information, which is only known at the end
        "short of the maximum",
        "not converged after {iterations}: by the standard errors, the maximum is further up; give a smaller "
        "`tolerance`",
    )
    NO_MAXIMUM = (  # the objective rises for ever as the slopes of some items grow
        "no finite maximum",
        "{items} have no finite estimate: they separate the subjects so sharply that the likelihood rises without end "
        "as their slopes grow; {steadier}",
    )
    NOT_IDENTIFIED = (  # it is the same along a ridge
        "not identified",
        "the responses do not determine the estimates: others have the same likelihood; {steadier}",
    )
    NOT_SETTLED = (
        "not settled",
        "not converged: regressions on the features still moved after {rounds} rounds; give fewer features, or more "
        "items and responses",
    )

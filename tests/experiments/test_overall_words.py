"""What is said of RMSEA goes no further than its interval."""

import pytest

from experiments.reports.render import render
from irtjax.scale.overall_fit import OverallFit


def in_words(overall, num_subjects):
    return render("_fit_in_words", {"overall": overall, "num_subjects": num_subjects})[0]


@pytest.mark.parametrize(
    ("rmsea", "low", "high", "said"),
    [
        (0.101, 0.09, 0.112, "This is a poor fit"),
        (0.02, 0.0, 0.04, "This is a close fit"),
        (0.06, 0.04, 0.07, "This is a fair fit"),
        (0.09, 0.06, 0.12, "The fit may be poor"),
        (0.0, 0.0, 0.11, "is open: the interval of RMSEA reaches from 0.000 to 0.110"),
    ],
)
def test_words_follow_the_interval(rmsea, low, high, said):
    found = OverallFit(100.0, 80, 0.05, rmsea, low, high, 0.05, 0.9, 0.9)
    many, few = (in_words(found, number) for number in (1000, 25))
    assert said in many
    assert "25 subjects" not in many
    assert "With 25 subjects these indices hardly tell" in few


def test_few_subjects_show_no_fit():
    close = OverallFit(60.0, 80, 0.95, 0.0, 0.0, 0.02, 0.05, 1.0, 1.0)
    assert "close fit:" not in in_words(close, 25)
    too_good = close._replace(degrees_of_freedom=64979, p_value=1.0)
    assert in_words(too_good, 25).startswith("M2 is smaller than chance allows: 25 subjects are too few for 64,979")

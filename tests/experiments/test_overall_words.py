"""What is said of RMSEA goes no further than its interval."""

import pytest

from experiments.reports.render import render
from irtjax.scale.overall_fit import OverallFit


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
    many, few = (render("_fit_in_words", {"overall": found, "num_subjects": number})[0] for number in (1000, 25))
    assert said in many
    assert "25 subjects" not in many
    assert "With 25 subjects these indices hardly tell" in few

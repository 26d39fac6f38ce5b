"""What RMSEA says of the fit of a whole test, in words that go no further than its interval."""

from irtjax.scale.overall_fit import OverallFit

CLOSE, FAIR = 0.05, 0.08  # Browne and Cudeck (1993)
FEW = 200  # subjects, below which M2 has little power against misfit that matters
TOO_GOOD = 0.999  # p-values above it are those of a statistic that has no chi-square distribution


def in_words(overall: OverallFit, num_subjects: int) -> str:
    """A sentence or two.

    The fit is close, fair or poor if the whole 90% interval of RMSEA is below 0.05, below 0.08, or above 0.08 (Browne
    and Cudeck 1993), and may be so if its estimate is. With few subjects no fit is called close or fair, and nothing at
    all is said where the statistic is smaller than chance allows.
    """
    low, high = overall.rmsea_low, overall.rmsea_high
    if overall.p_value > TOO_GOOD and overall.degrees_of_freedom > num_subjects:
        return (
            f"{overall.name} is smaller than chance allows: {num_subjects:,} subjects are too few for "
            f"{overall.degrees_of_freedom:,} degrees of freedom, and these indices say nothing of the fit."
        )
    few = num_subjects < FEW
    if low > FAIR:
        said = f"This is a poor fit: RMSEA is above {FAIR:g}, by its whole interval."
    elif high <= CLOSE and not few:
        said = f"This is a close fit: RMSEA is below {CLOSE:g}, by its whole interval."
    elif high <= FAIR and not few:
        said = f"This is a fair fit: RMSEA is below {FAIR:g}, by its whole interval."
    elif overall.rmsea > FAIR:
        said = f"The fit may be poor: RMSEA is above {FAIR:g}, though its interval is not."
    else:
        said = f"Whether the fit is close or poor is open: the interval of RMSEA reaches from {low:.3f} to {high:.3f}."
    if few:
        said += f" With {num_subjects:,} subjects these indices hardly tell a good fit from a poor one."
    return said

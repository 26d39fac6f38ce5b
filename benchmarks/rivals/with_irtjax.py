"""Fits by irtjax, twice: with and without compilation; and a third time on other subjects where they are given."""

from measure import fits, main


def contestant(settings: dict) -> dict:
    """Fits of `responses` and `training` (NPZ) with `options`."""
    from scipy.special import expit

    import irtjax
    from irtjax.fits.result import Fit

    def describe(fit: Fit) -> dict:
        slope, intercept, lower, upper = fit.parameters
        items = {"slope": slope[:, 0], "intercept": intercept, "lower": expit(lower), "slip": expit(-upper)}
        return {
            "steps": fit.iterations,
            "converged": bool(fit.converged),
            "log_likelihood": float(fit.log_likelihood),
            "items": {name: values.tolist() for name, values in items.items()},
            "difficulty": (-intercept).tolist(),  # in logits where all slopes are equal
            "mean_ability": float(slope[0, 0]) * float(fit.ability.mean()),
        }

    def fit(responses: irtjax.ResponseMatrix) -> Fit:
        return irtjax.fit(responses, **settings["options"])

    return {"versions": irtjax.versions(), "runs": fits(settings, irtjax.read_responses, fit, describe)}


if __name__ == "__main__":
    main(contestant)

"""Fits by irtjax, twice: with and without compilation."""

from measure import Stopwatch, main, peak_mb


def contestant(settings: dict) -> dict:
    """Two fits of `responses` with `options`."""
    import irtjax

    responses = irtjax.read_responses(settings["responses"])
    runs = []
    for label in ("first fit", "second fit"):
        stopwatch = Stopwatch()
        fit = irtjax.fit(responses, model="1pl", **settings["options"])
        seconds = stopwatch.read()
        slope = float(fit.parameters.slope[0, 0])
        runs.append(
            {
                **seconds,
                "label": label,
                "peak_mb": peak_mb(),
                "steps": fit.iterations,
                "converged": fit.converged,
                "difficulty": (-fit.parameters.intercept).tolist(),
                "mean_ability": slope * float(fit.ability.mean()),
            }
        )
    return {"versions": irtjax.versions(), "runs": runs}


if __name__ == "__main__":
    main(contestant)

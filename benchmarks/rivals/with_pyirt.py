"""Trains py-irt's 1PL through its Python interface, and looks at the parameters along the way."""

import importlib.metadata
import itertools

from measure import Stopwatch, main, peak_mb

EVERY = 50  # epochs between looks


def contestant(settings: dict) -> dict:
    """One training on `responses` (JSON lines) under `priors` for `epochs`.

    Returns one run per look along the way and two for the end: the parameters of the epoch of smallest loss, and the
    last. py-irt's schedule does not depend on how many epochs are to come: what is there after 500 epochs of 2000 is
    what a training of 500 epochs gives.
    """
    import pyro
    from py_irt.config import IrtConfig
    from py_irt.models.one_param_logistic import OneParamLog
    from py_irt.training import IrtModelTrainer

    looks = []

    class Watched(OneParamLog):
        """The 1PL whose guide, which each epoch calls once and first, notes time and parameters."""

        def get_guide(self):
            guide = super().get_guide()
            calls = itertools.count(-1)  # the first call makes the parameters, the second begins the first epoch

            def watched(*arguments):
                epochs = next(calls)
                if epochs > 0 and epochs % EVERY == 0:
                    found = [pyro.param(name).detach().clone() for name in ("loc_diff", "loc_ability")]
                    looks.append((epochs, stopwatch.read(), peak_mb(), found))
                return guide(*arguments)

            return watched

    pyro.set_rng_seed(settings["seed"])
    config = IrtConfig(model_type=Watched, epochs=settings["epochs"], priors=settings["priors"])
    trainer = IrtModelTrainer(data_path=settings["responses"], config=config, verbose=False)
    stopwatch = Stopwatch()
    trainer.train(device="cpu")
    end = stopwatch.read()

    item_ids = trainer.last_params["item_ids"]
    order = sorted(item_ids, key=lambda index: int(item_ids[index]))
    looks = [(f"{epochs} epochs", epochs, *look, *(x.tolist() for x in found)) for epochs, *look, found in looks]
    label = f"{settings['epochs']} epochs"
    for name, found in ((f"{label}, best loss", trainer.best_params), (label, trainer.last_params)):
        looks.append((name, settings["epochs"], end, peak_mb(), found["diff"], found["ability"]))
    runs = [
        {
            **seconds,
            "label": label,
            "peak_mb": peak,
            "steps": epochs,
            "difficulty": [difficulty[index] for index in order],
            "mean_ability": sum(ability) / len(ability),
        }
        for label, epochs, seconds, peak, difficulty, ability in looks
    ]
    return {"versions": {name: importlib.metadata.version(name) for name in ("py-irt", "torch")}, "runs": runs}


if __name__ == "__main__":
    main(contestant)

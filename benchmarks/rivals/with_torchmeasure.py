"""Predictions of shares by the Beta-2PL of torch_measure: maximum likelihood of abilities and items together.

Its precision φ is one number that is given, 10 by default; shares of 0 and 1 are beyond the model.
"""

import importlib.metadata

from measure import main


def contestant(settings: dict) -> dict:
    """Fits `responses` (NPZ, NaN where missing) with each `phi`; writes means (J, I) to `predictions`, and losses."""
    import numpy as np
    import torch
    from torch_measure.models import BetaTwoPL

    with np.load(settings["responses"]) as arrays:
        table = torch.tensor(arrays["responses"], dtype=torch.float32)
    torch.set_num_threads(1)  # its steps are too short to be shared
    table = table.clamp(settings["margin"], 1 - settings["margin"])  # NaN stays
    means, losses = [], []
    places = torch.cartesian_prod(torch.arange(table.shape[0]), torch.arange(table.shape[1]))
    for phi in settings["phi"]:
        torch.manual_seed(0)
        model = BetaTwoPL(*table.shape, phi=phi)
        history = model.fit(table, verbose=False, **settings.get("options", {}))
        with torch.no_grad():
            mean = model.predict({"subject_idx": places[:, 0], "item_idx": places[:, 1]})
        means.append(mean.reshape(table.shape).numpy())
        losses.append(history["losses"][-1])
    np.savez(settings["predictions"], mean=np.stack(means), loss=np.array(losses))
    versions = {name: importlib.metadata.version(name) for name in ("torch_measure", "torch", "numpy")}
    return {"versions": versions, "runs": [{"label": "fits", "losses": losses}]}


if __name__ == "__main__":
    main(contestant)

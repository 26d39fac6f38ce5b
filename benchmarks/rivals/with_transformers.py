"""The vectors of examples by transformers: means over the word pieces of their states."""

import importlib.metadata

from measure import main


def contestant(settings: dict) -> dict:
    """Of `examples`, each of one sentence or two, by the encoder in `folder`."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    encoder = AutoModel.from_pretrained(settings["folder"], dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(settings["folder"])
    found = []
    for sentences in settings["examples"]:
        pieces = tokenizer(*sentences, return_tensors="pt")
        with torch.no_grad():
            states = encoder(**pieces).last_hidden_state[0]
        found.append({"pieces": pieces["input_ids"][0].tolist(), "mean": states.mean(0).tolist()})
    return {"versions": {name: importlib.metadata.version(name) for name in ("transformers", "torch")}, "runs": found}


if __name__ == "__main__":
    main(contestant)

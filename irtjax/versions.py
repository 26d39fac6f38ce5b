"""What a result was made with."""

import importlib.metadata

PACKAGES = ("irtjax", "jax", "jaxlib", "numpyro", "flax", "optax")


def versions() -> dict[str, str]:
    """Versions of irtjax and of what its numbers depend on."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}

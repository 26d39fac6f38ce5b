"""For which kind of device networks formulate their products: `kernels.formulation`, under the name they know."""

from irtjax.kernels.formulation import ACCELERATORS, for_accelerator, formulated_for

__all__ = ["ACCELERATORS", "for_accelerator", "formulated_for"]

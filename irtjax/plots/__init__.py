"""Every picture; each function returns a figure, and `style.save_figure` or its own `savefig` writes it."""

from irtjax.plots.fits import categories, curves, information, ranking, wright

__all__ = ["categories", "curves", "information", "ranking", "wright"]

"""Every picture; each function returns a figure, and `style.save_figure` or its own `savefig` writes it."""

from irtjax.plots.fits import curves, information, ranking, wright

__all__ = ["curves", "information", "ranking", "wright"]

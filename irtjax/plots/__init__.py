"""Every picture; each function returns a figure, and `style.save_figure` writes it."""

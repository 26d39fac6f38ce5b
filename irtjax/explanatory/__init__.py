"""Items explained by their features, and what these say of new items."""

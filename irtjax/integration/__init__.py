"""How abilities are integrated out: nodes that subjects share, nodes around each posterior, normal posteriors."""

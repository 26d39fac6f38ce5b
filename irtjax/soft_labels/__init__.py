"""Learning from how people, or networks, divide over the classes of an item, and not from one gold label alone."""

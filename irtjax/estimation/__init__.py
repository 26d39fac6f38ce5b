"""From a response matrix to item parameters and abilities."""

"""Items of a chosen class and difficulty that a generator makes, from items whose difficulties a crowd has found."""

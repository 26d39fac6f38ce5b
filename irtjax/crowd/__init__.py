"""Artificial crowds: networks whose graded answers stand in for those of people."""

"""Is a benchmark sound? Which of its items are broken, and which subjects can be told apart."""

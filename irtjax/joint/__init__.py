"""Networks that learn a task and how difficult its items are, from gold labels and the answers of a crowd."""

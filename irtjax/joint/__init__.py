"""Networks that learn a task and how difficult its items are, from gold labels and answers: a crowd's or their own."""

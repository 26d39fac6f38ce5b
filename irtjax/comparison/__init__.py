"""What fits are compared by: held-out prediction, likelihood ratios, agreement and reliability."""

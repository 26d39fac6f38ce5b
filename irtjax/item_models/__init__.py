"""What an item's answer says of ability: one exponential family, one file per model."""

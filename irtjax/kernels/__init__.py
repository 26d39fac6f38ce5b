"""Pure functions of item parameters, abilities and responses, to be jitted and vmapped."""

"""Which examples a network trains on, and when: filtering and curricula by item difficulty."""

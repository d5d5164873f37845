"""What happens by itself: due orders and rollouts, old records, external work that is not reported of."""

"""Planning, steering and carrying on rollouts."""

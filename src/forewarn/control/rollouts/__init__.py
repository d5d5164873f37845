"""Plan, show and change rollouts, and advance them."""

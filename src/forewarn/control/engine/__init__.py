"""The engine: due orders and rollouts, driver calls, external timeouts, and pruning."""

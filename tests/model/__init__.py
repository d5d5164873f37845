"""Rules 1, 4, 5 and 11 as a model in Promela: checked by Spin and replayed on core."""

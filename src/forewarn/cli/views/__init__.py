"""How orders, rollouts, rehearsals, records and fleets are shown or written to a file."""

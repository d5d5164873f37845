"""How commands show orders, hosts, rollouts, rehearsals and fleets."""

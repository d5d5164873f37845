"""How the fleet is declared and changed: projects, hosts, groups, and one machine at a time."""

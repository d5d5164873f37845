"""Maintenance of many hosts in waves: what is announced next, what became of it, when the rest comes."""

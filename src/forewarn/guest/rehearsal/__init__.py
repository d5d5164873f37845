"""Rehearsals at the guest endpoint: which machines take part, and the faulty answers they are given."""

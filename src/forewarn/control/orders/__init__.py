"""Placing orders, and answering the events that announce them."""

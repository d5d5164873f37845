"""Decide whether work may be announced and started: update domains, budgets, windows, notice, holds."""

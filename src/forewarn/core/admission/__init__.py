"""Whether work may be announced and started: other update domains, budgets, windows, notice, holds."""

"""The server program: wiring, start, stop. `wiring.py` is the only place that names concrete adapters."""

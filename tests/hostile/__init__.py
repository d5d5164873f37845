"""Attacks on a running server, and the guarantees that must hold during an attack.

Each module attacks a real `forewarn serve` in one way: exhausted descriptors, slow and incomplete requests,
unknown callers, kills, outages, racing operators, a noisy tenant. An attack has a limit on connections,
requests and time. It stays on loopback or in its own network namespaces, ends by itself, and kills no process
except the server of the test. The tests check that honest callers are served, and how much CPU and memory the
server uses. They compare these with a plain request or with a generous bound, never with a duration.

`make test-system` runs a short form, of about a minute; `make test-long` runs a long form
(`tests/helpers/service/counts.py`).

Tests of single limits are in `tests/unit` and `tests/integration`. These tests check that the
limits work together.
"""

"""Attacks, as programs: what an adversary can do to a running server, and what must hold all the while.

Each module is one kind of attack on a real `forewarn serve`: descriptors, slow and half requests, strangers,
kills, outages, racing operators, a noisy tenant. An attack is bounded (in connections, requests and time),
stays on loopback or in network namespaces of its own, ends by itself, and ends no process but the server that
the test has started. What it asserts is what honest callers meet, and what the server has spent: CPU and
memory as the system counts them, compared with those of a plain request or with a bound far above what is
needed, never with a time.

`make test-system` runs them in a short form, of about a minute; `make test-long` in a long one
(`tests/helpers/service/counts.py`).

What a single limit does is tested beside the code it is of, in `tests/unit` and `tests/integration`; here it
is tested that all of them together keep a promise.
"""

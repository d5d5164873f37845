"""The answers of the operator API as dataclasses: each field is a JSON key, in the order of sending.

The server builds answers from values of `core` and writes them with `coding.write_body`. The client reads
them with `coding.read_body`. `/openapi.json` is generated from the classes: it takes the description of a
field from the comment that starts with `#:`.
"""

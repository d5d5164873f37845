"""What the operator API answers with, as values: each field is a key of the JSON, in the order of sending.

The server makes them of values of core and writes them (`coding.write_body`); the client reads them
(`coding.read_body`); `/openapi.json` is generated from them. A module for each noun.
"""

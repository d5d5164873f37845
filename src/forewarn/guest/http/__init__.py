"""Sockets, connections and the parsing of HTTP."""

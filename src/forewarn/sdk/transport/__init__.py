"""HTTP/1.1 between a machine and its endpoint: h11 without I/O, and what reads and writes the sockets."""

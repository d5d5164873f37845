"""HTTP/1.1 with h11: the protocol without I/O, and drivers for sockets and asyncio."""

"""What is said on the wire: JSON in and out, as pure functions. No sockets, no files."""

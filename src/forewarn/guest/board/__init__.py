"""The board: all documents in memory, ready to send, and the machines that may get them."""

"""The documents of all groups, kept in memory ready to send, and the machines that may ask for them."""

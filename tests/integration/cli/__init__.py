"""The commands against real servers, and the documents that print them."""

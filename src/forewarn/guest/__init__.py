"""The face that guests see: the metadata endpoint, answered from memory."""

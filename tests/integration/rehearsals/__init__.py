"""`forewarn rehearse`: in a private service and on a running server."""

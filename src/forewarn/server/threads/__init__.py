"""The worker that runs all of control, the operator API's thread, and the calls between threads."""

"""What forewarn costs, measured on the real programs: `python -m bench`, or `make bench`."""

"""What control needs of the outside world, as protocols in the words of the domain."""

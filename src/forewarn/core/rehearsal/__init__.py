"""What a rehearsal may do: on whose machines it may be played, and the faults its guests meet."""

"""What is sent to guests: the bytes of an answer, what it waits for, and the time it carries."""

"""Rules about guests: a group's document, whether the group listens, and the notice of its machines."""

"""Rules about guests: a group's document, whether the group is enabled, and the notice of its machines."""

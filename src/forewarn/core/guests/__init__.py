"""What guests are shown: a group's document, whether the group listens, the notice its machines got."""

"""Options and arguments that several commands take, and bodies that are made of options."""

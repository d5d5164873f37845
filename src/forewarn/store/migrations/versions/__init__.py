"""One module for each change of the schema; released modules never change."""

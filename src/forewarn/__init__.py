"""Give the guests of any fleet of virtual machines notice before they are disturbed."""

"""The commands, as a shell would call them."""

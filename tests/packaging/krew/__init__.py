"""The plugin as krew installs it: its archive, its manifest, and krew's rules for these."""

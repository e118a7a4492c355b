"""The state of the cluster, kept up to date from watches and from Tutti's own writes."""

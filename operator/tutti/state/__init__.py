"""What is known of the cluster: folded from watches and from Tutti's own writes."""

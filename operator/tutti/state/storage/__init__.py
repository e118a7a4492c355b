"""What is known of claims, volumes and their limits, and what they demand of nodes."""

"""The writes of a commit that give devices to claims, and take them back."""

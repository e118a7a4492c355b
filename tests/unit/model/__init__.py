"""The values and their arithmetic."""

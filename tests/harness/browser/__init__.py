"""A real Chromium for tests of the console: where it comes from, and how it is driven."""

"""The console in a real browser: every view and every click, and how quickly it answers."""

"""Between wire objects and model values."""

"""Decoders from wire objects to model values, and encoders back."""

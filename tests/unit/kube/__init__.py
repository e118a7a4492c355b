"""Tests of the wire formats, quantities, requests and decoding."""

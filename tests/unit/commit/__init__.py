"""Tests of commit."""

"""Tests of the judge itself: histories written by hand, clean ones and violating ones."""

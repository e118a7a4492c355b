"""Checks of plans and Reservations, by code that shares nothing with the code that makes them."""

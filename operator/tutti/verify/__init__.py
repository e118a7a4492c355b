"""Plans and Reservations checked by code that shares nothing with what makes them."""

"""The strategies, one by one and all by one contract."""

"""What is read of Spark's properties, and computed of them."""

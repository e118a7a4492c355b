"""What Tutti computes of Spark's properties beside what Spark itself asks a real API server for."""

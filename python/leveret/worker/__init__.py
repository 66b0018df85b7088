"""What runs in worker processes."""

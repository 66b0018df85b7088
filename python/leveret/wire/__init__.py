"""How calls and results travel between the host and its worker processes."""

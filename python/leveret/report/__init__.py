"""Reading traces, and drawing them and other results: what the command line shows."""

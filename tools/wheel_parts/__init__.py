"""What tools/wheel is made of: pythons.py finds interpreters, smoke.py is what a wheel must do."""

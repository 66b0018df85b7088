"""What tools/mutants is made of: patch.py applies patches, store.py knows where they are."""

"""What tools/check is made of: steps.py runs and counts, parts.py says what each part does."""

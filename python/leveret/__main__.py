"""python -m leveret: the command line."""

from .cli import main

main()

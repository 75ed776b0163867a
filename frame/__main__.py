"""Run the command line as ``python -m frame``."""

from frame.cli import main

main()

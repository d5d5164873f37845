"""Run `python -m forewarn` as the `forewarn` command."""

from forewarn.cli.main import main

if __name__ == "__main__":
    main()

"""The `forewarn` program, also as `python -m forewarn`."""

import gc


def main() -> None:
    """Run the command."""
    # Imports make many objects and hardly any garbage: looking for it would take a fifth of a start.
    gc.disable()
    from forewarn.cli.main import main as command

    command()


if __name__ == "__main__":
    main()

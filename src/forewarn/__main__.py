"""The command `forewarn`, also run as `python -m forewarn`."""

import gc


def main() -> None:
    """Run the command."""
    # Imports make many objects but hardly any garbage. Collecting it would take a fifth of the start.
    gc.disable()
    from forewarn.cli.main import main as command

    command()


if __name__ == "__main__":
    main()

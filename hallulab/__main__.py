"""The command `hallulab`, also as `python -m hallulab`."""

import sys


def main() -> None:
    """Run the command, and exit. Ctrl-C while it is still being imported ends it without a traceback, too."""
    try:
        from hallulab.simulator.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

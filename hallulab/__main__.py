"""`python -m hallulab` is the command `hallulab`."""

from hallulab.simulator.cli.main import main

if __name__ == "__main__":
    main()

"""``python -m gateway`` is the ``gateway`` command."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()

"""``python -m han_solo``: the same as ``han-solo``."""

from .cli.main import main

if __name__ == "__main__":
    main()

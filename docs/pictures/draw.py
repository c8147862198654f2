"""Draw a picture of a terminal: `tmux capture-pane -pe | python docs/pictures/draw.py TITLE > X.svg`."""

import sys

from rich.console import Console
from rich.text import Text

if __name__ == "__main__":
    text = Text.from_ansi(sys.stdin.read().rstrip())
    width = max(line.cell_len for line in text.split("\n")) + 1
    console = Console(record=True, width=width, file=sys.stderr, force_terminal=True)
    console.print(text)
    sys.stdout.write(console.export_svg(title=sys.argv[1]))

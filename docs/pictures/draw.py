"""Draw a picture of a terminal, with nothing in it that a page would load from elsewhere.

tmux capture-pane -pe | .venv/bin/python docs/pictures/draw.py TITLE > docs/pictures/NAME.svg
"""

import re
import sys

from rich.console import Console
from rich.text import Text

if __name__ == "__main__":
    text = Text.from_ansi(sys.stdin.read().rstrip())
    width = max(line.cell_len for line in text.split("\n")) + 1
    console = Console(record=True, width=width, file=sys.stderr, force_terminal=True)
    console.print(text)
    picture = console.export_svg(title=sys.argv[1])
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    sys.stdout.write(picture.replace("Fira Code", "ui-monospace, Menlo, Consolas"))

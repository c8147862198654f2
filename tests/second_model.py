"""A model server of another name, as a provider's would be: ``-m tests.second_model PORT``."""

import asyncio
import sys

from han_solo.embedded import rehearsal

NAME = "second"

if __name__ == "__main__":
    rehearsal.MODEL = NAME
    asyncio.run(rehearsal.serve(int(sys.argv[1])))

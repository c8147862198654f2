"""Find the transcripts on this machine, and say of each whether there is something new in it."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class Found:
    """A transcript on the disk. Times are nanoseconds since 1970, as the disk has them."""

    path: str
    project: str
    device: int
    inode: int
    size: int
    changed_ns: int

    @property
    def has_name(self) -> bool:
        """Say whether its path is text; a disk takes any bytes for a name."""
        try:
            self.path.encode()
        except UnicodeEncodeError:
            return False
        return True

    @property
    def side_agent(self) -> str | None:
        """Return the id of the side agent whose transcript this is, by its name."""
        stem = Path(self.path).stem
        return stem.removeprefix("agent-") if stem.startswith("agent-") else None

    @property
    def session(self) -> str:
        """Return the session's id, by the file's name or by the folder a side agent lies in."""
        if self.side_agent is None:
            return Path(self.path).stem
        parts = Path(self.path).parts
        return parts[parts.index("subagents") - 1] if "subagents" in parts else ""


def discover(roots: Sequence[Path], excluded: Sequence[str] = ()) -> Iterator[Found]:
    """Yield every transcript below the directories, sorted by path.

    Args:
        roots: such as ``~/.claude/projects``; each folder in one is a project.
        excluded: names or patterns of projects that are not read: of the folder, or of a path.
    """
    for root in roots:
        top = str(root.expanduser())
        for directory, folders, files in os.walk(top):
            folders.sort()
            project = next(iter(Path(os.path.relpath(directory, top)).parts), "")
            if _is_excluded(project, excluded):
                folders.clear()
                continue
            for name in sorted(files):
                if not name.endswith(SUFFIX):
                    continue
                path = f"{directory}/{name}"
                try:
                    status = os.stat(path)  # noqa: PTH116 - thousands of them: no object for each
                except OSError:
                    continue  # it went while we looked
                yield Found(
                    path=path,
                    project=project,
                    device=status.st_dev,
                    inode=status.st_ino,
                    size=status.st_size,
                    changed_ns=status.st_mtime_ns,
                )


def _is_excluded(project: str, excluded: Sequence[str]) -> bool:
    """Say whether a project's folder is excluded: its name is the path with other characters."""
    for pattern in excluded:
        plain = "".join(c if c.isalnum() or c in "*?[]" else "-" for c in pattern)
        if fnmatch.fnmatchcase(project, pattern) or fnmatch.fnmatchcase(project, plain):
            return True
    return False

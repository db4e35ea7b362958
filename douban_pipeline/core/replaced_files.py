"""Files that are replaced as a whole: a full disk or an interruption leaves what was there before."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield an empty file beside ``path`` that replaces it if the block succeeds, and is removed otherwise.

    Links are followed. What is no regular file, such as a pipe or ``/dev/stdout``, is yielded itself.

    Args:
        path: The file to write; it may not exist yet.
        mode: Its permissions; by default those of the file before, or those of any new file.

    Raises:
        OSError: It cannot be written; ``filename`` is ``path`` where the folder or the file is the reason.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    target = path.resolve()
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        kept = target.stat().st_mode & 0o777 if mode is None and target.exists() else mode
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600))
        yield part
        if kept is not None:
            part.chmod(kept)
        _sync(part)
        part.replace(target)
    except OSError as error:
        if error.filename == str(part):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        part.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

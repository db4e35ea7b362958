"""Files that are replaced as a whole, and files that may be compressed.

A full disk or an interruption leaves what was there before. Compression is recognised by the first bytes, not by names.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast


def keep_private() -> None:
    """Have this process make files and folders for its user alone, unless who started it shut out others already.

    The units of systemd let nginx, in the user's group, read the reports; a login's usual mask shows them to everybody.
    """
    mask = os.umask(0o077)
    if mask & 0o007 == 0o007:
        os.umask(mask)


def open_to_others(path: Path) -> str:
    """Return the mode of a file, as ``chmod`` takes it, that others than its user may read; empty for any other."""
    mode = path.stat().st_mode & 0o777 if path.is_file() else 0
    return f"{mode:o}" if mode & 0o077 else ""


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


PACKED_ENDINGS = (".gz", ".xz", ".bz2")
"""Suffixes of such files."""
FILE_PROBLEMS = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""What opening or reading such a file raises if it is missing, broken or truncated."""
_GZIP, _XZ, _BZIP2 = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh"


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading its decompressed content.

    Raises:
        OSError, EOFError, lzma.LZMAError, zlib.error: See `FILE_PROBLEMS`; also while it is read.
    """
    with path.open("rb") as file:
        begins = file.peek(len(_XZ))
        if begins.startswith(_GZIP):
            with gzip.GzipFile(fileobj=file) as reader:
                yield cast(IO[bytes], reader)
        elif begins.startswith(_XZ):
            with lzma.LZMAFile(file) as reader:
                yield cast(IO[bytes], reader)
        elif begins.startswith(_BZIP2):
            with bz2.BZ2File(file) as reader:
                yield cast(IO[bytes], reader)
        else:
            yield file


def what_is_wrong(error: BaseException) -> str:
    """Return in a few words why a file cannot be read, without its path; takes one of `FILE_PROBLEMS`."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

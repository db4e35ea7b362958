"""Files that may be compressed with gzip, xz or bzip2, recognised by their first bytes, not by their names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

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

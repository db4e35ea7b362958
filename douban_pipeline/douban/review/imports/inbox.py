"""Reads files that people put into the inbox for import: by name, and never a file outside the inbox."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from douban_pipeline.douban.review.imports.csv_files import MOST_BYTES, too_large
from douban_pipeline.douban.settings import Settings

_MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class InboxFile:
    """A file of the inbox."""

    name: str
    size: int
    changed: datetime


class InboxError(Exception):
    """There is no such file, or it may not be read; ``files`` are the readable ones, the newest first."""

    def __init__(self, problem: str, files: Sequence[InboxFile]) -> None:
        super().__init__(problem)
        self.files = tuple(files)


def inbox_of(settings: Settings) -> Path:
    """Return the folder of the inbox, which may not exist yet; it is not in the report folder, which may be served."""
    return settings.home.absolute() / "inbox"


def read_inbox_file(settings: Settings, name: str) -> bytes:
    """Return the content of a file of the inbox.

    A name that leads out of the folder, by separators or as a link, is refused. Otherwise anyone who may launch a job
    could read any file of this machine.

    Raises:
        InboxError: The file does not exist, is not a regular file, or is too large.
    """
    folder = inbox_of(settings)
    # Created so that people find it; if that fails, the message below names it.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    problem = _name_problem(name)
    if problem:
        raise InboxError(problem, _files(folder))
    try:
        return _read(folder / name)
    except FileNotFoundError:
        problem = f"收件夹 {folder} 里没有文件 {name!r}"
    except OSError as error:
        # O_NOFOLLOW reports a link as ELOOP.
        linked = error.errno == errno.ELOOP
        problem = f"{name!r} 是链接，请放入文件本身" if linked else f"无法读取 {name!r}：{error.strerror}"
    except _UnfitError as error:
        problem = f"{name!r}：{error}"
    raise InboxError(problem, _files(folder))


class _UnfitError(Exception):
    """The named entry is not a file that may be read."""


def _name_problem(name: str) -> str:
    if not name or name.startswith(".") or any(sign in name for sign in "/\\\0"):
        return f"file 只能是收件夹里的文件名，不带路径，也不以点开头，现为 {name[:100]!r}"
    return ""


def _read(path: Path) -> bytes:
    # O_NONBLOCK: opening a pipe does not wait for its other end.
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise _UnfitError("不是普通文件")
        if found.st_size > MOST_BYTES:
            raise _UnfitError(too_large(found.st_size))
        with os.fdopen(opened, "rb", closefd=False) as file:
            return file.read(MOST_BYTES + 1)
    finally:
        os.close(opened)


def _files(folder: Path) -> list[InboxFile]:
    files = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and not _name_problem(entry.name):
                found = entry.stat(follow_symlinks=False)
                files.append(InboxFile(entry.name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)))
    return sorted(files, key=lambda letter: (letter.changed, letter.name), reverse=True)[:_MOST_SHOWN]

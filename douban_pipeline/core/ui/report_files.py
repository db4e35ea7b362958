"""Reports as files: written whole or not at all, and where people find them. Knows nothing of Dagster."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

from douban_pipeline.douban.settings import Settings, variable


class ReportFileError(Exception):
    """A report could not be written; the message names the file, what is wrong with it and what to do."""


def reports_folder(settings: Settings) -> Path:
    """Return the folder of the reports, which may not be there yet."""
    return settings.home.absolute() / "reports"


def write_report(settings: Settings, name: str, content: str | bytes) -> Path:
    """Write a report, in place of the one of that name; who reads it meanwhile sees one or the other, never half.

    Raises:
        ReportFileError: The disk is full, or the folder cannot be written.
    """
    folder = reports_folder(settings)
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    held = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as file:
            held = file.name
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # Others may serve it: a temporary file is its owner's alone.
        Path(held).chmod(0o644)
        Path(held).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            if held:
                Path(held).unlink()
        raise ReportFileError(
            f"{path} cannot be written ({error.strerror}): make room there or give the account the right to write, "
            f"or set {variable('home')} to another folder"
        ) from error
    return path


def address_of(settings: Settings, name: str) -> str:
    """Return where people open a report: its address where the folder is served, its path otherwise."""
    base = settings.reports_url.rstrip("/")
    return f"{base}/{quote(name)}" if base else str(reports_folder(settings) / name)

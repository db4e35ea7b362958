"""Reports as files: written atomically, with the address at which people find them. Does not depend on Dagster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from douban_pipeline.core.files import replaced
from douban_pipeline.core.language import page_text


class ReportFileError(Exception):
    """A report could not be written; the message names the file, the problem and the remedy."""


@dataclass(frozen=True, slots=True)
class ReportFolder:
    """The folder of a system's reports.

    Attributes:
        path: Its path; it may not exist yet.
        url: Its address if a web server serves it, empty otherwise.
        setting: The setting that changes the folder; named in errors.
    """

    path: Path
    url: str
    setting: str

    def write(self, name: str, content: str | bytes) -> Path:
        """Write the report ``name``, replacing an existing one, and return its path.

        A concurrent reader sees either the old report or the new one, never a partial one.

        Raises:
            ReportFileError: The disk is full, or the folder cannot be written.
        """
        path = self.path / name
        data = content.encode() if isinstance(content, str) else content
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with replaced(path, 0o644) as part:  # a web server may serve it
                part.write_bytes(data)
        except OSError as error:
            raise self.problem(path, error) from error
        return path

    def problem(self, path: Path, error: OSError) -> ReportFileError:
        """Return the error that says in the language of the pages why ``path`` cannot be written, and what to do."""
        return ReportFileError(
            page_text(
                "{path} cannot be written ({error}): make room there or give the account the right "
                "to write, or set {setting} to another folder"
            ).format(path=path, error=error.strerror, setting=self.setting)
        )

    def address(self, name: str) -> str:
        """Return the address of a report for people: its URL if the folder is served, its path otherwise."""
        base = self.url.rstrip("/")
        return f"{base}/{quote(name)}" if base else str(self.path / name)

"""Report files: written whole or not at all, readable by others, and linked where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline.core.ui.report_files import ReportFileError, ReportFolder


def test_a_report_replaces_the_one_of_its_name_and_others_may_read_it(tmp_path: Path) -> None:
    folder = ReportFolder(tmp_path / "reports", "", "SOME_HOME")
    folder.write("a b.html", "一")
    path = folder.write("a b.html", b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o644)
    assert [each.name for each in path.parent.iterdir()] == ["a b.html"]
    assert folder.address("a b.html") == str(path)
    assert ReportFolder(folder.path, "https://x/reports/", "").address("a b.html") == "https://x/reports/a%20b.html"


def test_what_to_set_is_named_where_a_report_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(ReportFileError, match=r"reports/a.html 无法写入（.*把 SOME_HOME 设为别的文件夹"):
        ReportFolder(tmp_path / "reports", "", "SOME_HOME").write("a.html", "x")

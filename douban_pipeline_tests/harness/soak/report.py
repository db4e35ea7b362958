"""What a soak found and what happened in it, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from douban_pipeline_tests.harness.soak.evidence import Finding


@dataclass(frozen=True)
class Report:
    """The outcome of a soak."""

    about: Mapping[str, Any]
    findings: Sequence[Finding]
    happened: Mapping[str, Mapping[str, Any]]
    drained: bool
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def violated(self) -> list[Finding]:
        """The invariants that did not hold."""
        return [finding for finding in self.findings if not finding.held]

    @property
    def starved(self) -> list[Finding]:
        """The invariants that nothing broke but whose work still waited when the drain was left."""
        return [finding for finding in self.findings if finding.starved]

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        if not self.findings:
            return "nothing was audited"
        held = len(self.findings) - len(self.violated) - len(self.starved)
        parts = [f"{held} of {len(self.findings)} invariants held"]
        for outcome, findings in (("VIOLATED", self.violated), ("STARVED", self.starved)):
            if findings:
                parts.append(f"{outcome}: {'; '.join(finding.invariant for finding in findings)}")
        return "; ".join(parts)

    def _by_system(self) -> list[tuple[str, list[Finding]]]:
        systems = list(dict.fromkeys(finding.system for finding in self.findings)) or [""]
        return [
            (
                f"invariants of {system}" if len(systems) > 1 else "invariants",
                [finding for finding in self.findings if finding.system == system],
            )
            for system in systems
        ]

    def as_markdown(self) -> str:
        """Return it as a page."""
        about = " · ".join(f"{name} {value}" for name, value in self.about.items())
        lines = ["# Soak", "", about, "", f"**{self.verdict}**"]
        for title, findings in self._by_system():
            lines += ["", f"## {title.capitalize()}", ""]
            lines += ["| invariant | held | looked at | violations | waited |", "|--|--|--|--|--|"]
            lines += [
                f"| {_cell(finding.invariant)} | {_outcome(finding)} | {finding.checked:,} "
                f"| {finding.violations:,} | {finding.waiting:,} |"
                for finding in findings
            ]
        for finding in self.findings:
            if finding.examples or finding.note:
                lines += ["", f"### {finding.invariant}", ""]
                lines += [finding.note, ""] if finding.note else []
                lines += [f"- {example}" for example in finding.examples]
        for heading, counts in self.happened.items():
            lines += ["", f"## {heading.capitalize()}", "", "| what | how much |", "|--|--|"]
            lines += [f"| {_cell(name)} | {_cell(_shown(value))} |" for name, value in counts.items()]
        if self.notes:
            lines += ["", "## Notes", "", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> Path:
        """Write `soak.md` into ``folder``; return its path."""
        page = folder / "soak.md"
        page.write_text(self.as_markdown(), encoding="utf-8")
        return page


def _outcome(finding: Finding) -> str:
    return "starved" if finding.starved else "yes" if finding.held else "**NO**"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(count)}" for name, count in value.items()) or "none"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)

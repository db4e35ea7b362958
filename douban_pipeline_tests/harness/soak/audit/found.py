"""Gathering what breaks an invariant."""

from __future__ import annotations

from dataclasses import dataclass, field

from douban_pipeline_tests.harness.soak.evidence import Finding

_EXAMPLES = 12


@dataclass(slots=True)
class Case:
    """One invariant under examination: what was looked at, and what breaks it."""

    invariant: str
    checked: int = 0
    violations: int = 0
    waiting: int = 0
    examples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def breaks(self, example: str) -> None:
        """Note a violation."""
        self.violations += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(example)

    def undone(self, example: str, drained: bool) -> None:
        """Note work that was not done: a violation if all that waited was ``drained``, else it may only have waited."""
        if drained:
            self.breaks(example)
            return
        self.waiting += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"waits: {example}")

    def finding(self) -> Finding:
        """Return what became of it."""
        note = "; ".join(self.notes)
        return Finding(
            self.invariant, not self.violations, self.checked, self.violations, tuple(self.examples), note, self.waiting
        )

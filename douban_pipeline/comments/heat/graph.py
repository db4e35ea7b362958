"""Directed graph of factors, named functions over columns; computes only what is needed, each factor once."""

from __future__ import annotations

import difflib
import graphlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

Column = np.ndarray[Any, Any]
Columns = Mapping[str, Column]


class ValueKind(StrEnum):
    """Type of a factor's values."""

    NUMBER = "number"
    FLAG = "flag"
    TEXT = "text"


class FactorGraphError(ValueError):
    """The factors form no valid graph: a duplicate, an unknown input, or a cycle."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One named column: read from storage, or computed from others.

    Attributes:
        name: Name used by rules and other factors.
        compute: Function of the factors named by its parameters; None if the column is read from storage.
    """

    name: str
    kind: ValueKind
    meaning: str
    compute: Callable[..., Column] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the factors that it is computed from."""
        return tuple(inspect.signature(self.compute).parameters) if self.compute is not None else ()


def computed(kind: ValueKind, meaning: str) -> Callable[[Callable[..., Column]], Factor]:
    """Return a decorator that makes a factor of a function: its name is the function's, its inputs the parameters."""

    def factor(compute: Callable[..., Column]) -> Factor:
        return Factor(compute.__name__, kind, meaning, compute)

    return factor


class FactorGraph:
    """A set of factors in which every input is known and there is no cycle."""

    def __init__(self, factors: Iterable[Factor]) -> None:
        """Build the graph.

        Raises:
            FactorGraphError: The message names the factors at fault.
        """
        listed = list(factors)
        twice = [name for name, count in Counter(each.name for each in listed).items() if count > 1]
        if twice:
            raise FactorGraphError(f"factors defined twice: {', '.join(twice)}")
        self.factors = {each.name: each for each in listed}
        for each in listed:
            for name in each.inputs:
                if name not in self.factors:
                    raise FactorGraphError(f"factor {each.name} needs {name}, which is unknown{self.suggestion(name)}")
        try:
            self._order = tuple(graphlib.TopologicalSorter({each.name: each.inputs for each in listed}).static_order())
        except graphlib.CycleError as error:
            raise FactorGraphError(f"factors need each other: {' → '.join(reversed(error.args[1]))}") from error

    def suggestion(self, name: str) -> str:
        """Return a hint with the most similar factor name, to be appended to a message; empty if none is similar."""
        near = difflib.get_close_matches(name, self.factors, n=1)
        return f" (did you mean {near[0]}?)" if near else ""

    def needed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return ``names`` and all factors that they depend on, in order of computation.

        Raises:
            FactorGraphError: A name is unknown.
        """
        wanted: set[str] = set()
        open_names = list(names)
        while open_names:
            name = open_names.pop()
            if name not in self.factors:
                raise FactorGraphError(f"unknown factor {name}{self.suggestion(name)}")
            if name not in wanted:
                wanted.add(name)
                open_names += self.factors[name].inputs
        return tuple(name for name in self._order if name in wanted)

    def read_for(self, names: Iterable[str]) -> frozenset[str]:
        """Return the columns that have to be read from storage to compute ``names``."""
        return frozenset(name for name in self.needed(names) if self.factors[name].compute is None)

    def compute(self, names: Sequence[str], read: Columns) -> dict[str, Column]:
        """Return the columns ``names``, computed from those in ``read``.

        Columns that are no longer needed are released, so that few of them are in memory at a time.

        Raises:
            FactorGraphError: A name is unknown, a needed column is not in ``read``, or columns differ in length.
        """
        order = self.needed(names)
        absent = sorted(name for name in order if self.factors[name].compute is None and name not in read)
        if absent:
            raise FactorGraphError(f"columns were not read: {', '.join(absent)}")
        uses = Counter(name for each in order for name in self.factors[each].inputs)
        uses.update(names)
        columns: dict[str, Column] = {}
        for name in order:
            factor = self.factors[name]
            if factor.compute is None:
                columns[name] = read[name]
                continue
            columns[name] = factor.compute(*(columns[each] for each in factor.inputs))
            for each in factor.inputs:
                uses[each] -= 1
                if not uses[each]:
                    del columns[each]
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise FactorGraphError(f"columns differ in length: {lengths}")
        return {name: columns[name] for name in names}

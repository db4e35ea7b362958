"""Factors as a directed graph of named functions over columns; only what is needed is computed, each once."""

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


class Kind(StrEnum):
    """What a factor's values are."""

    NUMBER = "number"
    FLAG = "flag"
    TEXT = "text"


class FactorGraphError(ValueError):
    """The factors make no graph: one is defined twice, needs an unknown one, or needs itself."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One named column: read from storage, or computed from others.

    Attributes:
        name: How rules and other factors call it.
        kind: What its values are.
        meaning: What it says, in Chinese, for those who write rules.
        compute: Its function of the factors that are its parameters; None if it is read.
    """

    name: str
    kind: Kind
    meaning: str
    compute: Callable[..., Column] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what it is computed from."""
        return tuple(inspect.signature(self.compute).parameters) if self.compute is not None else ()


def computed(kind: Kind, meaning: str) -> Callable[[Callable[..., Column]], Factor]:
    """Make a factor of a function: its name is the function's, its inputs are the function's parameters."""

    def factor(compute: Callable[..., Column]) -> Factor:
        return Factor(compute.__name__, kind, meaning, compute)

    return factor


class FactorGraph:
    """A set of factors in which every input is known and no factor needs itself."""

    def __init__(self, factors: Iterable[Factor]) -> None:
        """Join the factors.

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
        """Return a hint at the factor that was perhaps meant, to be put behind a message; empty if none is near."""
        near = difflib.get_close_matches(name, self.factors, n=1)
        return f" (did you mean {near[0]}?)" if near else ""

    def needed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return ``names`` and all that they are computed from, in the order of computing.

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
        """Return which columns have to be read from storage so that ``names`` can be computed."""
        return frozenset(name for name in self.needed(names) if self.factors[name].compute is None)

    def compute(self, names: Sequence[str], read: Columns) -> dict[str, Column]:
        """Return the columns ``names``, computed from those in ``read``.

        A column that nothing further needs is let go, so that memory holds few of them at a time.

        Raises:
            FactorGraphError: A name is unknown, a column that is needed is not in ``read``, or a column has another
                length than the rest.
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

"""Operators' management of the order by heat."""

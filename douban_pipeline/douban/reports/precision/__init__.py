"""Precision of automatic links, measured by people's decisions, and brakes on strata with too low precision."""

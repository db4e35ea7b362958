"""User-facing output of all systems: tables, pages, plots, report files, links into launchpads."""

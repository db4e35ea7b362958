"""Rescoring: judges the library again under other rules, from archived answers, without any request."""

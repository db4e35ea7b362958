"""Clients for each kind of source; they return values and do not decide when to poll."""

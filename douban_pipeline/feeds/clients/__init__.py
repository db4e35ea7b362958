"""Asking sources of each kind; what comes back is values, and nothing here decides when."""

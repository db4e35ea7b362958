"""Which videos a decision is about that is taken for many at once, and which are left out, and why."""

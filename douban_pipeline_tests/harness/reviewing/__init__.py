"""How fast people review: a sitting in a real browser, at a real service, with Dagster as in production beside it."""

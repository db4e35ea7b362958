"""The only door into the CMS: the change log, what forbids a write, reverts, history and drift."""

"""A system of the smallest kind, added to the registry by `test_added_system` as CONTRIBUTING describes."""

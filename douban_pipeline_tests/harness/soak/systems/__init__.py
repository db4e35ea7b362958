"""The systems beside Douban's in a soak: a module of life for each, and an auditor of what it left behind.

They share a MariaDB and a Dagster of their own (`ground`), what goes wrong (`harms`) and the course (`course`). To add
one: a `SystemLife` in a module of its own, an auditor in `audits`, and its class in `lives`.
"""

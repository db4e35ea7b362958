"""Keeps the metadata of a maccms10 video library true to Douban, unattended."""

__version__ = "0.1.0"

RULE_VERSION = "rules-2"
"""Names the rules a verdict was reached by; stored with every verdict and every write.

Raise it whenever the same facts could lead to another verdict.
"""

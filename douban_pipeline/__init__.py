"""Keeps the metadata of a maccms10 video library true to Douban, unattended."""

__version__ = "1.0.0.dev0"

"""The core system: keeps a video library's metadata in sync with Douban.

Schedules are in ``schedules``, sensors in ``sensors``; the chain's assets are in ``chain``, with a package per step.
"""

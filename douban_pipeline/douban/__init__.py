"""The core system: keeps a video library's metadata true to Douban.

Schedules are in ``schedules``, sensors in ``sensors``; the chain's assets are in ``chain``, a package for each step.
"""

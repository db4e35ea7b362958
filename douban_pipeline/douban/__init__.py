"""The core system: keeps a video library's metadata true to Douban.

Schedules stand in ``schedules``, sensors in ``sensors``; the chain's assets stand in ``chain``, a package a step.
"""

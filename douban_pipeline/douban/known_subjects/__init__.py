"""Subjects that are known without a request: from a file that the owner loads, and from all that Douban ever answered.

``subject_files`` reads the files, ``name_index`` keeps and finds names on disk, ``known_search`` asks it about a video.
What is found here is looked at first; that nothing is found here proves nothing.
"""

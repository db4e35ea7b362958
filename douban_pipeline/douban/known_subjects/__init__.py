"""Subjects that are known without a request: from files that the owner loads, and from Douban's archived answers.

``subject_files`` reads the files, ``name_index`` stores and finds names on disk, ``known_search`` queries it for a
video. Subjects found here are considered first; finding none proves nothing.
"""

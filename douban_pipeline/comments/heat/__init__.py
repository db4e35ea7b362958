"""Ranking of comments by heat: factors, a score in parts, rules of operators, and explanations of ranks.

Apart from I/O, everything is a pure function over numpy columns with one element per comment.
"""

"""How comments are ordered by heat: factors, a score in parts, rules that people write, and what explains a rank.

Everything but what reads and writes is a pure function over numpy columns, one element a comment.
"""

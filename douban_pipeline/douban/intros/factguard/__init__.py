"""The fact guard: what a text must not hold if it is to stand in the CMS. Deterministic; no I/O, no clock, no model.

``inspection`` puts the checks together: addresses, markup and emoji (``signs``), numbers (``numbers_said``), titles
(``titles_said``), people by name (``names_said``) and by role (``roles_said``), claims and advertising (``claims``),
copies (``copies``). Tables of words are in ``number_words`` and ``name_words``, the forms compared in ``wording``.
"""

from douban_pipeline.douban.intros.factguard.copies import similarity
from douban_pipeline.douban.intros.factguard.inspection import Limits, Violation, inspect, marks
from douban_pipeline.douban.intros.factguard.names_said import candidates_for_people

__all__ = ["Limits", "Violation", "candidates_for_people", "inspect", "marks", "similarity"]

"""What TMDB's terms require wherever its data are shown: its logo, the sentence, and a link to it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

from douban_pipeline.core.language import Language, language, terminal_language

SENTENCE = "This product uses the TMDB API but is not endorsed or certified by TMDB."
"""The sentence, as the terms word it."""
ATTRIBUTION = "本产品使用 TMDB API，但未获 TMDB 认可或认证。"
"""The same in Chinese."""
LINK = "https://www.themoviedb.org/"
LOGO = (Path(__file__).parent / "tmdb_logo.svg").read_bytes()
"""TMDB's own logo ("blue short"), unchanged, from its page of logos for attribution. It is TMDB's trademark: show it
smaller than the product's own, in these colours and proportions, and only beside TMDB's data."""
LOGO_INLINE = f"data:image/svg+xml;base64,{base64.b64encode(LOGO).decode()}"
"""The logo as an address that holds it, for pages that load nothing."""
LOGO_PATH = "/tmdb/logo.svg"
"""Where the service has it."""
ATTRIBUTED = {"attribution": ATTRIBUTION, "attribution_en": SENTENCE, "logo": LOGO_PATH, "link": LINK}
"""The parts in an answer of the service."""
MENTION = "（参考 TMDB "
"""What a text says where TMDB's data had a part in it."""


def attribution_parts() -> dict[str, str]:
    """Return logo, sentence and link for a page that holds all that it shows."""
    return {"logo": LOGO_INLINE, "sentence": _sentence(language()), "link": LINK}


def _sentence(wanted: Language) -> str:
    return ATTRIBUTION if wanted == "zh" else SENTENCE


def names_tmdb(cells: Iterable[object]) -> bool:
    """Return whether TMDB's data had a part in what one of these cells says."""
    return any(MENTION in str(cell) for cell in cells)


def attribution_of(*texts: str) -> str:
    """Return logo and sentence for a page of Dagster with these texts; empty where none names TMDB."""
    return attribution_markdown() if names_tmdb(texts) else ""


def attribution_line() -> str:
    """Return the sentence with the link, for a terminal."""
    return f"{_sentence(terminal_language())} {LINK}"


def attribution_markdown() -> str:
    """Return logo and sentence, linking to TMDB, for a page of Dagster."""
    return f"[![TMDB]({LOGO_INLINE})]({LINK})\n\n{_sentence(language())}"

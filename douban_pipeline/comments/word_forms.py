"""Forms of texts: as stored, and as searched for words. Pure.

Stored texts lose what nobody sees; emoji, which are made of such characters, stay whole. Searched forms are made of
letters alone, each folded to one of those that look the same, so that a listed word is found however it is disguised.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import ahocorasick
import regex
from confusable_homoglyphs import confusables

from douban_pipeline.matching.text import simplify

# Sequences of UTS #51: flags of regions and countries, keycaps, and pictures, joined, with presentation and skin tone.
_PICTURE = r"\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|[\ufe0e\ufe0f])?"
_EMOJI = (
    r"\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,8}\U000e007f"
    r"|\p{Regional_Indicator}{2}|[0-9#*]\ufe0f\u20e3|" + f"{_PICTURE}(?:\u200d{_PICTURE})*"
)
# Letters of these scripts are joined or kept apart by U+200C and U+200D; their words change without them.
_JOINING = (
    r"\p{Arabic}\p{Bengali}\p{Devanagari}\p{Gujarati}\p{Gurmukhi}\p{Kannada}\p{Khmer}\p{Malayalam}\p{Mongolian}\p{Oriya}"
    r"\p{Sinhala}\p{Syriac}\p{Tamil}\p{Telugu}"
)
_UNSEEN = regex.compile(
    f"(?P<kept>{_EMOJI}"
    f"|(?<=[{_JOINING}]\\p{{M}}*)[\u200c\u200d](?=[{_JOINING}\\p{{M}}])"
    r"|(?<=\p{Han})[\U000e0100-\U000e01ef]"
    r")|\p{Default_Ignorable_Code_Point}|\p{Bidi_Control}|[\p{Cc}--[\n\t]]",
    regex.V1,
)
# Marks that lie above, below or across a letter; those that take a place of their own cover nobody else's line.
_MARKS = regex.compile(r"((?:[\p{Mn}\p{Me}][\u200c\u200d]?){3})[\p{Mn}\p{Me}\u200c\u200d]+")
_SEEN = regex.compile(r"[^\p{Z}\p{C}\p{M}\p{Default_Ignorable_Code_Point}\u2800]|\p{Co}|\p{Cn}", regex.V1)
_SHOWN_EMOJI = regex.compile(r"\p{Emoji_Presentation}(?:\p{Emoji_Modifier})?|\p{Emoji}\ufe0f\u20e3?")


def clean(text: str) -> str:
    """Return a text as it is stored: without invisible characters and blanks around it, at most two line ends in a row.

    A letter has at most three marks, so that none covers other lines. Empty if nothing of it can be seen.
    """
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    text = _UNSEEN.sub(lambda found: found["kept"] or "", text)
    text = _MARKS.sub(r"\1", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return text if _SEEN.search(text) else ""


def without_marks(text: str) -> str:
    """Return a text without all invisible characters, those inside emoji included."""
    return regex.sub(r"\p{Default_Ignorable_Code_Point}", "", text)


def normalise(text: str) -> str:
    """Return a text with width and case folded, its length unchanged."""
    plain = (unicodedata.normalize("NFKC", letter).casefold() for letter in text)
    return "".join(new if len(new) == 1 else old for old, new in zip(text, plain, strict=True))


# Look-alikes that Unicode's table leaves out, because they differ in some type: small letters of Cyrillic and Greek.
_MORE_ALIKE = {
    "в": "b",
    "к": "k",
    "м": "m",
    "н": "h",
    "т": "t",
    "и": "n",
    "κ": "k",
    "τ": "t",
    "η": "n",
    "μ": "u",
    "υ": "u",
}
_OWN_SCRIPTS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_NAMED_LETTER = re.compile(
    r"(?:NEGATIVE (?:SQUARED|CIRCLED) LATIN CAPITAL|REGIONAL INDICATOR SYMBOL|LATIN LETTER SMALL CAPITAL)"
    r" ?(?:LETTER )?([A-Z])$"
)
_DIGIT_LETTERS = {"0": "o", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "@": "a", "$": "s"}
_UPRIGHT = "1|!"
"""Signs that stand for i or for l."""
_TOKEN = re.compile(r"[a-z0-9@$|!]*[a-z][a-z0-9@$|!]*[a-z][a-z0-9@$|!]*")


@cache
def _alike() -> dict[str, str]:
    """Return letters of other scripts, and the Latin letters that they look like (Unicode's confusables, UTS #39)."""
    found: dict[str, str] = {}
    for sign, others in confusables.confusables_data.items():
        if len(sign) != 1 or sign.isascii() or _OWN_SCRIPTS.match(sign):
            continue
        latin = [each["c"].casefold() for each in others if len(each["c"]) == 1 and each["c"].isascii()]
        letter = next((each for each in latin if each.isalpha()), None)
        if letter is not None:
            found[sign] = letter
    return {**found, **_MORE_ALIKE}


@lru_cache(maxsize=20_000)
def fold_letter(sign: str) -> str:
    """Return a character as letters and digits that look the same, without width, case, accents and script.

    Empty for marks and whatever is invisible; signs that are no letters stay.
    """
    if sign.isascii():
        return sign.lower()
    if regex.match(r"\p{Default_Ignorable_Code_Point}|[\p{Mn}\p{Me}]", sign):
        return ""
    named = _NAMED_LETTER.search(unicodedata.name(sign, ""))
    if named:
        return named[1].lower()
    alike, folded = _alike(), []
    for letter in unicodedata.normalize("NFKC", sign):
        known = alike.get(letter) or alike.get(letter.casefold())
        if known is None:
            bare = letter if _OWN_SCRIPTS.match(letter) else unicodedata.normalize("NFD", letter)[0]
            known = alike.get(bare.casefold(), bare.casefold())
        folded.append(known)
    return "".join(folded)


def fold(text: str) -> str:
    """Return a text whose letters are folded by `fold_letter`, simplified, with digits in Latin words as letters."""
    folded = simplify("".join(map(fold_letter, text)))
    return _TOKEN.sub(partial(_spelt, "i"), folded)


def _spelt(upright: str, found: re.Match[str]) -> str:
    token = found[0]
    if token.isalpha():
        return token
    return "".join(upright if sign in _UPRIGHT else _DIGIT_LETTERS.get(sign, sign) for sign in token)


@dataclass(frozen=True, slots=True)
class _Letters:
    """The letters of a text, and where each stands in it."""

    form: str
    places: list[int]


class WordFinder:
    """Finds the words of a list in a text, disguised or not.

    Words of letters are found among a text's letters (Aho-Corasick), whatever is put between them, as far as
    `_is_disguise` takes it for a disguise and not for the end of a phrase. Words with other signs are found as written.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._letters, self._written = ahocorasick.Automaton(), ahocorasick.Automaton()
        for word in words:
            plain = without_marks(clean(word))
            folded = fold(plain)
            if folded and folded.isalnum():
                self._letters.add_word(folded, len(folded))
            elif plain:
                self._written.add_word(normalise(plain), len(plain))
        for automaton in (self._letters, self._written):
            if len(automaton):
                automaton.make_automaton()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) of every word found in a text."""
        found: set[tuple[int, int]] = set()
        if len(self._written):
            places = [place for place, sign in enumerate(text) if fold_letter(sign)]
            form = normalise("".join(text[place] for place in places))
            found |= {(places[end - size + 1], places[end] + 1) for end, size in self._written.iter(form)}
        if len(self._letters):
            emoji = {place for match in _SHOWN_EMOJI.finditer(text) for place in range(*match.span())}
            for letters in _letters_of(text):
                found |= set(self._disguised(text, letters, emoji))
        return sorted(found)

    def _disguised(self, text: str, letters: _Letters, emoji: set[int]) -> Iterator[tuple[int, int]]:
        places = letters.places
        for end, size in self._letters.iter(letters.form):
            first = end - size + 1
            gaps = [_gap(text, places[at], places[at + 1], emoji) for at in range(first, end)]
            embedded_left = first > 0 and not _gap(text, places[first - 1], places[first], emoji)
            after = end + 1 < len(places)
            embedded_right = after and not _gap(text, places[end], places[end + 1], emoji)
            if _is_disguise(letters.form[first : end + 1], gaps, embedded_left, embedded_right):
                yield places[first], places[end] + 1


def _letters_of(text: str) -> list[_Letters]:
    """Return the letters of a text; twice where a sign may be i or l."""
    signs, places = [], []
    for place, sign in enumerate(text):
        for letter in fold_letter(sign):
            signs.append(letter)
            places.append(place)
    joined = "".join(signs)
    simple = simplify(joined)
    if len(simple) != len(joined):  # a converted phrase of another length
        simple = "".join(one if len(one := simplify(sign)) == 1 else sign for sign in signs)
    found: list[_Letters] = []
    for upright in "il":
        spelt = _TOKEN.sub(partial(_spelt, upright), simple)
        kept = [(sign, place) for sign, place in zip(spelt, places, strict=True) if sign.isalnum()]
        letters = _Letters("".join(sign for sign, _ in kept), [place for _, place in kept])
        if not found or letters.form != found[0].form:
            found.append(letters)
    return found


def spellings(text: str) -> list[str]:
    """Return the letters and digits of a text, folded by `fold_letter` and simplified; twice where a sign is i or l."""
    return [letters.form for letters in _letters_of(text)]


_LONGEST_GAP = 12
"""Characters, invisible ones included, beyond which what stands between two letters parts phrases, as a line does."""
_SENTENCE_ENDS = frozenset("。！？!?\n")
_PHRASE_ENDS = frozenset("，、；：,;:…—“”‘’\"'()（）《》〈〉「」『』【】[]")


def _gap(text: str, left: int, right: int, emoji: set[int]) -> str:
    """Return what is seen between two letters: ``o`` odd signs, ``p`` commas, ``s`` ends of sentences, ``b`` blanks."""
    if right - left > _LONGEST_GAP:
        return "p"
    marks = set()
    for place in range(left + 1, right):
        sign = text[place]
        if not fold_letter(sign):
            continue
        if sign in _SENTENCE_ENDS:
            marks.add("s")
        elif sign in _PHRASE_ENDS:
            marks.add("p")
        elif sign.isspace() or sign in "·•・‧" or place in emoji:
            marks.add("b")
        else:
            marks.add("o")
    return "".join(sorted(marks))


def _is_disguise(word: str, gaps: list[str], embedded_left: bool, embedded_right: bool) -> bool:
    """Return whether a word with gaps between its letters was cut up, and is not the end of one phrase and the next.

    Chinese: signs that no phrase ends with cut up a word; blanks do, except where both halves of a word of two letters
    belong to longer phrases; ends of lines and sentences do where each is one letter; commas do where they follow each
    of three letters or more. Latin: letters that all stand alone, or one token cut by signs that are no blanks.
    """
    if not any(gaps):
        return True
    seen, alone = set("".join(gaps)), not (embedded_left or embedded_right)
    apart = alone and all(gaps)
    if word.isascii():
        return apart or (alone and not seen & set("bsp"))
    if "o" in seen:
        return True
    if seen == {"b"}:
        return len(word) > 2 or not (embedded_left and embedded_right)
    return apart and ("p" not in seen or len(word) > 2)

"""Normalises text for comparison: folds width, script, case and punctuation.

Everything here is for *comparison*; displayed text keeps its raw form. Traditional text is compared in two simplified
forms, by character (``t2s``) and by Taiwan's vocabulary (``tw2sp``: 計程車 is 出租车), because the second form changes
words and is wrong about as often as it is right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from operator import itemgetter

import opencc
from rapidfuzz import fuzz, process

from douban_pipeline.matching.numerals import roman_value

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, for use inside a character class."""

_KANA = r"\u3040-\u30ff\u31f0-\u31ff"
_HANGUL = r"\uac00-\ud7af\u1100-\u11ff"

# In each pair the first character is replaced by the second. Characters that OpenCC leaves or gets wrong, pronouns and
# particles that vary between regions, variants of one character; then Japanese forms, which OpenCC's t2s does not know.
_FOLD_PAIRS = """
锺钟 馀余 㑩罗 妳你 牠它 祂他 著着 麽么 甚什 囍喜 喫吃 糉粽 崑昆 祇只 衹只 倖幸 嚐尝 唸念 闇暗
裡里 裏里 讐仇 囯国 の的 栄荣 沢泽 広广 辺边 浜滨 斎斋 斉齐 桜樱 恵惠 竜龙 滝泷 関关 黒黑 渋涩
県县 亜亚 悪恶 圧压 囲围 円圆 塩盐 応应 仮假 価价 帰归 気气 戯戏 拠据 暁晓 銭钱 剣剑 検检 験验
厳严 鉱矿 済济 雑杂 桟栈 歯齿 児儿 実实 釈释 収收 従从 獣兽 縦纵 焼烧 証证 乗乘 浄净 譲让 醸酿
図图 粋粹 酔醉 髄髓 瀬濑 摂摄 専专 戦战 銃铳 繊纤 荘庄 捜搜 巣巢 総总 騒骚 増增 蔵藏 臓脏 続续
対对 帯带 択择 単单 団团 弾弹 遅迟 庁厅 鎮镇 逓递 鉄铁 転转 伝传 闘斗 読读 悩恼 脳脑 覇霸 廃废
拝拜 売卖 発发 髪发 抜拔 払拂 仏佛 変变 豊丰 訳译 薬药 揺摇 様样 謡谣 頼赖 覧览 両两 猟猎 緑绿
涙泪 塁垒 霊灵 齢龄 労劳 歩步 徳德 姫姬 舎舍 薫熏 勲勋 嶋岛 峯峰 﨑崎 髙高 濵滨 凜凛 呑吞 噛啮
"""
_FOLD = {ord(pair[0]): pair[1] for pair in _FOLD_PAIRS.split()}

_ROMAN_RUN = re.compile("[\u2160-\u216b\u2170-\u217b]+")
_LATIN_MARKS = re.compile("[\u0300-\u036f]")
_COMMON_HAN = re.compile("[\u4e00-\u9fff]+")
_SIGNS = "·•・‧：！？，、。；（）《》〈〉「」『』【】〔〕…—–‘’“”　"
_PLAIN = re.compile(f"[\x00-\x7f\u4e00-\u9fff\u3041-\u3096\u30a1-\u30fa\u30fc-\u30fe\uff01-\uff5e{_SIGNS}]+")
"""Text that can be folded character by character: Chinese, kana, ASCII in either width, common punctuation."""
_LETTERS = dict.fromkeys(map(ord, _SIGNS)) | {
    code: folded if (folded := unicodedata.normalize("NFKC", chr(code)).casefold()).isalnum() else None
    for code in (*range(0x80), *range(0xFF01, 0xFF5F))
}
"""Translation table of plain text; characters not listed are letters and stay."""


@cache
def _converter(config: str) -> opencc.OpenCC:
    """Return an OpenCC converter; loading takes milliseconds and is done once a process, when needed."""
    return opencc.OpenCC(config)


# 鍾 becomes 锺 and 餘 (of 慶餘年) may become 馀: simplified, but not used in titles.
_REPAIR = str.maketrans("锺馀㑩", "钟余罗")


# Converted only within phrases: 藉着 becomes 借着, but 慰藉 stays.
_IN_PHRASES = frozenset("乾藉瞭著覆徵夥摺麼麽噁閤")


@cache
def _traditional() -> frozenset[str]:
    """Return the characters that OpenCC changes; most titles have none, and a lookup is cheaper than converting."""
    every = [chr(code) for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000]
    simple = str(_converter("t2s").convert("\n".join(every))).split("\n")
    changed = {before for before, after in zip(every, simple, strict=True) if before != after}
    return frozenset(changed) | _IN_PHRASES | frozenset(map(chr, _REPAIR))


@cache
def _simplified() -> re.Pattern[str]:
    """Return what matches text that OpenCC leaves unchanged: a pattern reads a text faster than a set does."""
    return re.compile(f"[^{''.join(_traditional())}\U00010000-\U0010ffff]*")


def simplify(text: str) -> str:
    """Return a text with traditional characters simplified one by one."""
    if text.isascii() or _simplified().fullmatch(text):
        return text
    return str(_converter("t2s").convert(text)).translate(_REPAIR)


def simplify_taiwan(text: str) -> str:
    """Return Taiwan's traditional text in mainland characters *and* words."""
    return text if text.isascii() else str(_converter("tw2sp").convert(text)).translate(_REPAIR)


def narrow(text: str) -> str:
    """Return a text in NFKC, with runs of whitespace as one space and Roman numeral characters as Arabic digits.

    Roman numeral *characters* (Ⅱ) are always numbers; letters (II) are left for the title parser.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ROMAN_RUN.sub(_arabic, text))
    return " ".join(text.split())


def _arabic(match: re.Match[str]) -> str:
    letters = unicodedata.normalize("NFKC", match[0])
    value = roman_value(letters)
    return letters if value is None else str(value)


def _strip_accents(text: str) -> str:
    # Only the marks of Latin and Greek letters: a mark on kana (が) makes a different letter.
    return unicodedata.normalize("NFKC", _LATIN_MARKS.sub("", unicodedata.normalize("NFKD", text)))


def _letters(text: str) -> str:
    """Return the letters and digits of a text, without case, width and accents."""
    if _PLAIN.fullmatch(text):
        return text.translate(_LETTERS)
    return "".join(filter(str.isalnum, _strip_accents(narrow(text).casefold())))


def _fold_once(text: str, taiwan: bool) -> str:
    kept = _letters(text)
    # A title of punctuation only (？？, …) is still a title.
    kept = kept or "".join(_strip_accents(narrow(text).casefold()).split())
    simple = simplify_taiwan(kept) if taiwan else simplify(kept)
    return simple.translate(_FOLD)


@cache
def _moving() -> frozenset[str]:
    """Return the common Chinese characters that normalisation replaces."""
    return _traditional() | frozenset(map(chr, _FOLD))


@cache
def _settled() -> re.Pattern[str]:
    return re.compile(f"[^\0-\u4dff\ua000-\U0010ffff{''.join(_moving())}]+")


def is_settled(text: str) -> bool:
    """Return whether a text consists of common Chinese characters that all functions here leave unchanged."""
    return _settled().fullmatch(text) is not None


@lru_cache(maxsize=65536)
def normalise(text: str, *, taiwan: bool = False) -> str:
    """Return the form in which two texts are compared: without case, width, accents, spaces and punctuation.

    Idempotent. ``taiwan`` converts Taiwan's words too. A text of punctuation only keeps its punctuation.
    """
    if not taiwan and is_settled(text):
        return text
    if not taiwan and _PLAIN.fullmatch(text):
        kept = text.translate(_LETTERS)
        if kept and _moving().isdisjoint(kept):
            return kept
    for _ in range(4):
        folded = _fold_once(text, taiwan)
        if folded == text:
            break
        text, taiwan = folded, False
    return text


_SCRIPTS = (
    ("kana", re.compile(f"[{_KANA}]")),
    ("hangul", re.compile(f"[{_HANGUL}]")),
    ("han", re.compile(f"[{HAN}]")),
    ("latin", re.compile("[A-Za-z\u00c0-\u024f]")),
)


@lru_cache(maxsize=65536)
def script(text: str) -> str:
    """Return ``kana``, ``hangul``, ``han``, ``latin`` or ``other``: the first script of which the text has a letter.

    Names in different scripts cannot be compared by spelling.
    """
    if _COMMON_HAN.fullmatch(text):
        return "han"  # the most common case
    for name, pattern in _SCRIPTS[-1:] if text.isascii() else _SCRIPTS:
        if pattern.search(text):
            return name
    return "other"


_PLACE = itemgetter(0)


def ratios(text: str, others: Sequence[str], least: float) -> list[tuple[int, float]]:
    """Return which of ``others`` have a `fuzz.ratio` of at least ``least`` with a text, in their order.

    Each is given by its place, with the ratio, 0 to 100. One call for all is three times as fast as one for each, and
    mostly none is similar.
    """
    found = process.extract(text, others, scorer=fuzz.ratio, score_cutoff=least, limit=None)
    return sorted([(place, ratio) for _, ratio, place in found], key=_PLACE) if found else []

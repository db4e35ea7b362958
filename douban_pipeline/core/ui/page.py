"""The page around a report: one file without scripts, fonts or pictures from elsewhere, for a desk and for a phone."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_CSS = """
:root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--text:#1c2430;--muted:#5f6b7a;--line:#e1e6ed;--soft:#eef1f5;
--accent:#2f6fb5;--good:#2b8055;--bad:#bd3a2f;--bar:#2f6fb566;
--g0:#c8493d;--g1:#a9b2be;--g2:#e3c27a;--g3:#d9a441;--g4:#7fb0e3;--g5:#3f9b6c}
@media(prefers-color-scheme:dark){:root{--bg:#10141a;--card:#181e26;--text:#e4e9f0;--muted:#97a3b3;--line:#2b3440;
--soft:#1f2731;--accent:#6aaaf2;--good:#62c792;--bad:#ff8578;--bar:#6aaaf277;
--g0:#e0685c;--g1:#566170;--g2:#a88a48;--g3:#c79a45;--g4:#4f86c0;--g5:#47a877}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:3.5rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--text);
font:16px/1.55 system-ui,-apple-system,"Segoe UI","PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
main,header{max-width:1180px;margin:0 auto;padding:0 1rem}
header{padding-top:1.6rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .35rem}h2{font-size:1.2rem;margin:0 0 .5rem}
h3{font-size:1rem;margin:1.1rem 0 .4rem}p{margin:.35rem 0}
.muted,small{color:var(--muted)}small{font-size:.8rem}
.badge{display:inline-block;padding:.05rem .6rem;border-radius:1rem;background:var(--accent);color:var(--card);
font-size:1rem;font-weight:600;vertical-align:.12em}
nav{position:sticky;top:0;z-index:2;background:var(--bg);border-bottom:1px solid var(--line);margin-bottom:1rem}
nav div{max-width:1180px;margin:0 auto;padding:.5rem 1rem;display:flex;gap:1.1rem;overflow-x:auto;white-space:nowrap;
font-size:.9rem;scrollbar-width:none}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.1rem 1.2rem;margin:0 0 1rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:.8rem;margin:0 0 1rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:.8rem 1rem;display:flex;
flex-direction:column}
section .card{background:var(--bg)}
.card b{margin-top:auto;font-size:1.65rem;line-height:1.25;font-variant-numeric:tabular-nums}
.card span{font-size:.85rem;line-height:1.35;color:var(--muted)}
.good{color:var(--good)}.bad{color:var(--bad)}
.scroll{overflow-x:auto;margin:.6rem -1.2rem 0;padding:0 1.2rem}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.45rem .55rem;text-align:right;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
th{font-weight:600;color:var(--muted);font-size:.8rem;vertical-align:bottom;border-bottom-width:2px}
tbody tr:last-child td{border-bottom:0}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--card);
min-width:8.5rem;max-width:15rem;white-space:normal}
td small{display:block;line-height:1.35;font-size:.75rem}
th{white-space:normal;min-width:4.6rem}
tr.total td{background-color:var(--soft);font-weight:600}tr.total small{font-weight:400}
td.share{background:linear-gradient(90deg,var(--bar) var(--share),transparent 0) 0 100%/100% 4px no-repeat}
td.text,th.text{text-align:left;white-space:normal;min-width:9rem}
.entries td{overflow-wrap:anywhere}.entries td.text:not(:first-child){min-width:7rem}
.entries th{min-width:0;white-space:nowrap}
.entries .short,.entries .act{text-align:left}.entries td.act{white-space:normal}
.entries td.act a{display:inline-block;padding:.1rem .6rem;margin:0 .25rem .25rem 0;border:1px solid var(--line);
border-radius:1rem;white-space:nowrap}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:1.4rem 2rem;
align-items:start}
.plots svg{width:100%;max-width:500px!important}
.stack{display:flex;height:1.5rem;border-radius:6px;overflow:hidden;margin:.3rem 0 .9rem;background:var(--soft)}
.stack i{min-width:2px}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.85rem;color:var(--muted)}
.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:3px;margin-right:.4rem;vertical-align:-.08em}
.g0{background:var(--g0)}.g1{background:var(--g1)}.g2{background:var(--g2)}
.g3{background:var(--g3)}.g4{background:var(--g4)}.g5{background:var(--g5)}
.rows{display:grid;gap:.7rem}
article{border:1px solid var(--line);border-left:4px solid var(--g0);border-radius:8px;padding:.65rem .9rem;
overflow-wrap:anywhere}
article.better{border-left-color:var(--g5)}
article h3{margin:0 0 .25rem}article p{margin:.15rem 0}
dl{display:grid;grid-template-columns:auto 1fr;gap:.1rem .8rem;margin:.2rem 0}
dt{color:var(--muted)}dd{margin:0}
.chip{display:inline-block;background:var(--soft);color:var(--muted);border-radius:1rem;padding:0 .55rem;
font-size:.8rem;margin:.1rem .25rem .1rem 0}
details{margin:.8rem 0}summary{cursor:pointer;font-weight:600;margin-bottom:.5rem}
code{font:.85em ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.empty{color:var(--good);font-weight:600}
footer{max-width:1180px;margin:0 auto;padding:0 1rem 2rem;font-size:.85rem}
@media(max-width:600px){body{font-size:15px}section{padding:.9rem;border-radius:10px}
.scroll{margin:.6rem -.9rem 0;padding:0 .9rem}.cards{grid-template-columns:1fr 1fr;gap:.6rem}
.card{padding:.65rem .75rem}.card b{font-size:1.35rem}th:first-child,td:first-child{min-width:6.5rem;max-width:8rem}
.entries thead{display:none}.entries tbody,.entries tr{display:block}.entries td:empty{display:none}
.entries tr{padding:.55rem 0;border-bottom:1px solid var(--line)}.entries tr:last-child{border-bottom:0}
.entries tr>td{display:grid;grid-template-columns:5.2rem minmax(0,1fr);gap:.6rem;position:static;max-width:none;
padding:.12rem 0;border:0;text-align:left;white-space:normal}
.entries td::before{content:attr(data-head);color:var(--muted);font-size:.8rem}
.entries td:first-child{font-weight:600}.entries td:first-child::before{font-weight:400}}
@media print{nav{display:none}body{background:#fff}section{break-inside:avoid-page}}
"""


def escape(text: object) -> str:
    """Return text for HTML: markup becomes letters, line ends become spaces."""
    return html.escape(" ".join(str(text).split()))


def chinese(text: str) -> str:
    """Return text that may be Chinese, marked so that its letters get the right shapes."""
    return f'<span lang="zh-Hans">{escape(text)}</span>' if text else ""


def page(
    title: str, badge: str, told: str, chapters: Sequence[tuple[str, str, str]], head: str = "", *, lang: str = "en"
) -> str:
    """Return a whole page.

    Args:
        title: Its heading.
        badge: Set behind the heading.
        told: A sentence under it.
        chapters: Key, title and HTML of every part.
        head: HTML over the first part.
        lang: Language that it is written in, for screen readers and the shapes of letters.
    """
    links = "".join(f'<a href="#{key}">{escape(name)}</a>' for key, name, _ in chapters)
    body = "".join(f'<section id="{key}"><h2>{escape(name)}</h2>{text}</section>' for key, name, text in chapters)
    mark = f' <span class="badge">{escape(badge)}</span>' if badge else ""
    return (
        f'<!DOCTYPE html>\n<html lang="{lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(f'{title} {badge}')}</title><style>{_CSS}</style></head><body>"
        f'<header><h1>{escape(title)}{mark}</h1><p class="muted">{escape(told)}</p></header>'
        f"<nav><div>{links}</div></nav><main>{head}{body}</main></body></html>\n"
    )


def card(label: str, value: str, behind: str, tone: str = "") -> str:
    """Return one number that is looked at first."""
    style = f' class="{tone}"' if tone else ""
    told = f"<span>{escape(label)}</span><b{style}>{escape(value)}</b><small>{escape(behind)}</small>"
    return f'<div class="card">{told}</div>'


def grid(heads: Sequence[str], rows: Iterable[str], *, entries: bool = False) -> str:
    """Return a table that scrolls by itself where it is too wide; ``heads`` and ``rows`` are HTML.

    With ``entries`` every row is an entry of its own, which on a phone is read from top to bottom; its cells then say
    their head themselves (``data-head``).
    """
    head, body = f"<tr>{''.join(heads)}</tr>", "".join(rows)
    kind = ' class="entries"' if entries else ""
    return f'<div class="scroll"><table{kind}><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def subject(douban_id: int | None) -> str:
    """Return a link to a subject's page, empty for no subject."""
    if not douban_id:
        return ""
    return f'<a href="https://movie.douban.com/subject/{douban_id}/" rel="noreferrer">{douban_id}</a>'

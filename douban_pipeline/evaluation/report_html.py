"""The report as a page: what has to be seen first on top, everything else under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from douban_pipeline.core.ui.page import card, chinese, escape, grid, page, subject
from douban_pipeline.core.ui.plots import percent
from douban_pipeline.evaluation.comparison import Change, Comparison, grade_name
from douban_pipeline.evaluation.metrics import HIDDEN, MISSING, TRAPS, Group, Measures, Rate, Section
from douban_pipeline.evaluation.report import (
    MOST_IMPROVED,
    MOST_REGRESSED,
    SIDE_BY_SIDE,
    SWEEP_MEANING,
    TRUTH_COLUMNS,
    Column,
    Report,
    between,
    cell,
    columns_of,
    described,
    local_name,
    place_of,
    plots,
    remarks,
    score_of,
    sentence,
    sweep_plots,
    sweep_table,
    truth_name,
)
from douban_pipeline.evaluation.runner import Result
from douban_pipeline.matching.strata import STRATA

Chapter = tuple[str, str, str]


def render(report: Report) -> str:
    """Return the whole report as one page."""
    return page("Evaluation", report.profile.name, described(report), list(_chapters(report)), _cards(report))


def render_summary(reports: Sequence[Report], difference: Comparison | None) -> str:
    """Return what several profiles did on the same rows, side by side, as one page."""
    chapters = [("side", "Side by side", _side_by_side(reports))]
    drawn = "".join(f"<div>{plot}</div>" for plot in sweep_plots(reports) if plot)
    if drawn:
        chapters.append(("plots", "Wrong links against coverage", f'<div class="plots">{drawn}</div>'))
    if difference is not None:
        title = f"From {difference.earlier_name} to {reports[-1].profile.name}"
        chapters.append(("comparison", title, _comparison(difference)))
    for report in reports:
        name = escape(report.profile.name)
        link = f'<p><a href="{name}/report.html">The whole report of {name}</a></p>'
        told = _cards(report) + _grades(report) + _table(report.glance) + link
        chapters.append((f"profile-{name}", f"Profile {report.profile.name}", told))
    return page("Evaluation: profiles side by side", "", described(*reports), chapters)


def _side_by_side(reports: Sequence[Report]) -> str:
    heads = ["<th></th><th>Rows</th>"]
    heads += [
        f"<th>{escape(column.title)}<br>{escape(report.profile.name)}</th>"
        for column in SIDE_BY_SIDE
        for report in reports
    ]
    rows = []
    for groups in zip(*(report.glance.groups for report in reports), strict=True):
        first = groups[0]
        cells = "".join(_cell(column, group.measures) for column in SIDE_BY_SIDE for group in groups)
        rows.append(_row(first, cells))
    return grid(heads, rows)


def _row(group: Group, cells: str) -> str:
    total = ' class="total"' if group.total else ""
    return f"<tr{total}><td>{chinese(group.name)}</td><td>{group.measures.rows:,}</td>{cells}</tr>"


def _cards(report: Report) -> str:
    found = []
    if (headline := report.headline) is not None:
        found += [
            _rate_card("Coverage, headline sources", headline.linked),
            _wrong_card("Wrong links, headline", headline.wrong),
        ]
    for name, title in (
        (MISSING, "Linked, subject missing"),
        (HIDDEN, "Linked, truth taken out"),
        (TRAPS, "Traps linked"),
    ):
        if (measures := report.group(name)) is not None:
            found.append(_wrong_card(title, measures.wrong))
    if headline is not None:
        found.append(_rate_card("Truth in top 5 of reviews, when found", headline.review_shown_of_found))
        if headline.requests.mean is not None:
            found.append(
                card("Requests for a verdict", f"{headline.requests.mean:.2f}", f"95 % ≤ {headline.requests.p95}")
            )
    return f'<div class="cards">{"".join(found)}</div>' if found else ""


def _rate_card(label: str, rate: Rate) -> str:
    if rate.share is None:
        return card(label, "—", "no such row")
    return card(label, percent(rate.share), f"{between(rate)} of {rate.total:,}")


def _wrong_card(label: str, rate: Rate) -> str:
    return card(label, f"{rate.hits}", f"{between(rate)} of {rate.total:,}", "bad" if rate.hits else "good")


def _chapters(report: Report) -> Iterator[Chapter]:
    notes = "".join(f"<li>{escape(remark)}</li>" for remark in remarks(report))
    glance = _grades(report) + _table(report.glance) + f'<p class="muted">{escape(report.glance.note)}</p>'
    yield "glance", report.glance.title, f'{glance}<ul class="muted">{notes}</ul>'
    if report.comparison is not None:
        told = f'<p class="muted">Against {escape(report.comparison.earlier_name)}.</p>'
        yield "comparison", "Comparison", told + _comparison(report.comparison)
    yield "wrong", f"Wrong links ({len(report.wrong):,})", _listed(report.wrong)
    if report.group(HIDDEN) is not None:
        title = f"Links with the truth taken out ({len(report.wrong_hidden):,})"
        yield "hidden", title, _listed(report.wrong_hidden)
    drawn = "".join(f"<div>{plot}</div>" for plot in plots(report))
    told = (
        "Whiskers are 95 % intervals. The curves move the score threshold over all rows that were linked; dashed, also "
        "over rows that only their score or lead kept back. Points mark the threshold in force."
    )
    yield "plots", "Plots", f'<p class="muted">{told}</p><div class="plots">{drawn}</div>{_sweep(report)}'
    yield "workload", "What keeps rows from being linked", _workload(report)
    for section in report.sections:
        note = f'<p class="muted">{escape(section.note)}</p>' if section.note else ""
        yield section.key, section.title, note + _table(section)
    meanings = "".join(f"<dt>{escape(each.title)}</dt><dd>{escape(each.meaning)}</dd>" for each in TRUTH_COLUMNS)
    yield "meaning", "How it is counted", f"<dl>{meanings}</dl>"


def _grades(report: Report) -> str:
    parts = []
    for name, counts in report.grades.items():
        legend, pieces = "", ""
        for told, grade, count in counts:
            share = percent(count / sum(each[2] for each in counts))
            legend += f'<span><i class="g{int(grade)}"></i>{escape(told)} {count:,} ({share})</span>'
            pieces += f'<i class="g{int(grade)}" style="flex:{count}" title="{escape(told)}: {count:,}"></i>'
        parts.append(f'<h3>{escape(name)}</h3><div class="stack">{pieces}</div><div class="legend">{legend}</div>')
    return "".join(parts)


def _table(section: Section) -> str:
    columns = columns_of(section)
    heads = ["<th></th><th>Rows</th>"]
    heads += [f'<th title="{escape(column.meaning)}">{escape(column.title)}</th>' for column in columns]
    rows = []
    for group in section.groups:
        rows.append(_row(group, "".join(_cell(column, group.measures) for column in columns)))
    return grid(heads, rows)


def _cell(column: Column, measures: Measures) -> str:
    value, *behind = cell(column, measures)
    rate = column.value(measures)
    small = "".join(f"<small>{escape(each)}</small>" for each in behind)
    if not isinstance(rate, Rate) or rate.share is None:
        return f"<td>{escape(value)}{small}</td>"
    if column.bad:
        return f'<td><span class="{"bad" if rate.hits else "good"}">{escape(value)}</span>{small}</td>'
    return f'<td class="share" style="--share:{100 * rate.share:.1f}%">{escape(value)}{small}</td>'


def _listed(results: Sequence[Result]) -> str:
    listed = "".join(map(_wrong, results))
    return f'<div class="rows">{listed}</div>' if listed else '<p class="empty">There is none.</p>'


def _wrong(result: Result) -> str:
    gold = result.gold
    linked = result.titles.get(result.douban_id or 0, "")
    people = "、".join((*gold.video.directors, *gold.video.actors)[:5])
    facts = "，".join(filter(None, ("、".join(gold.video.regions), people)))
    also = f' <small lang="zh-Hans">{escape(facts)}</small>' if facts else ""
    return (
        f"<article><h3>{chinese(local_name(gold))}{also}</h3>"
        f"<dl><dt>linked</dt><dd>{chinese(linked)} {subject(result.douban_id)}</dd>"
        f"<dt>truth</dt><dd>{chinese(truth_name(result))} {subject(gold.expected)}</dd></dl>"
        f"<p>{chinese(result.explanation)}</p><p>{_chips(result)}</p></article>"
    )


def _chips(result: Result) -> str:
    gold = result.gold
    told = [place_of(gold), f"{gold.source}, {gold.label}", score_of(result), *gold.tags]
    told += [STRATA.get(code, code) for code in result.strata]
    return "".join(f'<span class="chip">{chinese(each)}</span>' for each in told if each)


def _workload(report: Report) -> str:
    if not report.workload:
        return '<p class="empty">Every row was linked.</p>'
    told = (
        "Headline sources and rows whose true subject is missing. “Alone” are rows with this reason and no other: "
        "without it the right ones would have been linked well, which is what it costs, and the wrong ones wrongly, "
        "which is what it is good for."
    )
    heads = [
        '<th>Reason</th><th class="text">Meaning</th><th>Rows</th><th>Of them reviews</th><th>Alone</th>'
        "<th>Alone, right</th><th>Alone, wrong</th>"
    ]
    most = max(held.rows for held in report.workload)
    rows = [
        f'<tr><td><code>{escape(held.code)}</code></td><td class="text">{chinese(sentence(held.code))}</td>'
        f'<td class="share" style="--share:{100 * held.rows / most:.1f}%">{held.rows:,}</td><td>{held.reviewed:,}</td>'
        f"<td>{held.alone:,}</td><td>{held.alone_right:,}</td><td>{held.alone_wrong:,}</td></tr>"
        for held in report.workload
    ]
    return f'<p class="muted">{told}</p>' + grid(heads, rows)


def _sweep(report: Report) -> str:
    found = sweep_table(report)
    if not found:
        return ""
    heads = [f"<th>{escape(title)}</th>" for title in found[0]]
    rows = [f"<tr>{''.join(f'<td>{escape(each)}</td>' for each in row.values())}</tr>" for row in found]
    told = f'<p class="muted">{escape(SWEEP_MEANING)}</p>'
    return f"<details><summary>The curves in numbers</summary>{told}{grid(heads, rows)}</details>"


def _comparison(comparison: Comparison) -> str:
    cards = [
        card("Regressed", f"{len(comparison.regressed):,}", "fare worse", "bad" if comparison.regressed else "good"),
        card("Improved", f"{len(comparison.improved):,}", "fare better", "good" if comparison.improved else ""),
        card(
            "Unchanged", f"{comparison.unchanged:,}", f"{comparison.relinked:,} with another verdict or best candidate"
        ),
        card("New rows", f"{comparison.added:,}", f"{comparison.gone:,} gone"),
    ]
    parts = [f'<div class="cards">{"".join(cards)}</div>']
    for title, changes, most, opened in (
        ("Regressed", comparison.regressed, MOST_REGRESSED, " open"),
        ("Improved", comparison.improved, MOST_IMPROVED, ""),
    ):
        if changes:
            shown = "".join(_change(change) for change in changes[:most])
            left = f'<p class="muted">… and {len(changes) - most:,} more</p>' if len(changes) > most else ""
            head = f"<summary>{title} ({len(changes):,})</summary>"
            parts.append(f'<details{opened}>{head}<div class="rows">{shown}</div>{left}</details>')
    return "".join(parts)


def _change(change: Change) -> str:
    result = change.result
    gold = result.gold
    before, after = (grade_name(gold, each) for each in (change.before, change.after))
    better = ' class="better"' if change.after > change.before else ""
    best = chinese(result.titles.get(result.douban_id or 0, ""))
    return (
        f"<article{better}><h3>{chinese(local_name(gold))}</h3>"
        f"<dl><dt>before</dt><dd>{escape(before)} {subject(change.earlier.douban_id)}</dd>"
        f"<dt>after</dt><dd>{escape(after)} {best} {subject(result.douban_id)}</dd>"
        f"<dt>truth</dt><dd>{chinese(truth_name(result))} {subject(gold.expected)}</dd></dl>"
        f"<p>{chinese(result.explanation)}</p><p>{_chips(result)}</p></article>"
    )

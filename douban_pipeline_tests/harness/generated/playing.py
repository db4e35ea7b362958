"""Play links: what makes a row of `mac_vod` long."""

from __future__ import annotations

_PLAYERS = (
    ("lzm3u8", "v{0}.lz-cdn.example/{1}/{2}_{3}"),
    ("ffm3u8", "vip.ffzy-play{0}.example/{1}/{2}_{3}"),
    ("dbm3u8", "s{0}.db-video.example/hls/{1}/{2}{3}"),
    ("bfzym3u8", "c{0}.bf-stream.example:7891/{1}/{2}/{3}"),
    ("wjm3u8", "cdn.wujin{0}.example/m3/{1}{3}/{2}"),
)
_FILM_LABELS = ("HD中字", "正片", "HD国语")
_LABELS = [(f"第{number:02d}集$", 2 * number + 1) for number in range(1, 101)]
"""Episodes in a list of links, with an odd number each."""


def play_columns(vod_id: int, episodes: int, groups: int, token: int, day: int) -> dict[str, str]:
    """Return the play columns: one to three groups of a link each episode.

    Args:
        vod_id: The video's id, which stands in the links.
        episodes: How many.
        groups: Chance: how many groups, and whose.
        token: Chance: what else stands in the links.
        day: Chance: when they were uploaded.
    """
    count = 1 if groups < 36_000 else 2 if groups < 58_000 else 3
    date = f"20{18 + day % 9}{1 + (day >> 4) % 12:02d}{1 + (day >> 8) % 28:02d}"
    names, links = [], []
    for group in range(count):
        player, pattern = _PLAYERS[(groups + group) % len(_PLAYERS)]
        head = "https://" + pattern.format(token % 9 + group, date, vod_id + 10_000, f"{token:04x}")
        names.append(player)
        salt = (vod_id * 4 + group) * 2_654_435_761
        if episodes == 1:
            links.append(f"{_FILM_LABELS[token % 3]}${head}{salt & 0xFFFFFFFF:08x}/index.m3u8")
            continue
        links.append(
            "#".join(
                [f"{label}{head}{salt * number & 0xFFFFFFFF:08x}/index.m3u8" for label, number in _LABELS[:episodes]]
            )
        )
    return {
        "vod_play_from": "$$$".join(names),
        "vod_play_server": "$$$".join(["no"] * count),
        "vod_play_note": "$$$".join([""] * count),
        "vod_play_url": "$$$".join(links),
    }

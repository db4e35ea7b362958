"""Ids from Douban URLs: every form of a film's address, and nothing else's."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.sources.subject_urls import subject_ids

FILM_URLS = [
    "https://movie.douban.com/subject/1292052/",
    "https://movie.douban.com/subject/1292052",
    "http://movie.douban.com/subject/1292052/?from=showing",
    "//movie.douban.com/subject/1292052/#comments",
    "movie.douban.com/subject/1292052",
    "https://movie.douban.com:443/subject/1292052/",
    "HTTPS://MOVIE.DOUBAN.COM/SUBJECT/1292052/",
    "https://movie.douban.com/subject/1292052/comments?status=P",
    "https://movie.douban.com/subject/1292052/photos?type=S&start=0",
    "https://www.movie.douban.com/subject/1292052/",
    "https://m.douban.com/movie/subject/1292052/",
    "https://m.douban.com/movie/subject/1292052/?refer=home",
    "https://m.douban.com/tv/subject/1292052/",
    "https://www.douban.com/doubanapp/dispatch?uri=/movie/1292052?from=mdouban&open=app",
    "https://www.douban.com/doubanapp/dispatch?uri=%2Fmovie%2F1292052",
    "https://www.douban.com/doubanapp/dispatch?open=app&uri=/tv/1292052/",
    "https://www.douban.com/doubanapp/dispatch?uri=/subject/1292052/",
    "https://www.douban.com/doubanapp/dispatch/movie/1292052",
    "https://www.douban.com/link2/?url=https%3A%2F%2Fmovie.douban.com%2Fsubject%2F1292052%2F&query=x",
    "https://www.douban.com/link2/?url=https%253A%252F%252Fmovie.douban.com%252Fsubject%252F1292052%252F",
    "https://www.google.com/url?q=https://movie.douban.com/subject/1292052/&sa=U",
    "douban://douban.com/movie/1292052",
    "douban://douban.com/tv/1292052?from=x",
    "https://frodo.douban.com/api/v2/movie/1292052",
    "https://m.douban.com/rexxar/api/v2/tv/1292052/rating",
    "https://api.douban.com/v2/movie/subject/1292052",
    r"https:\/\/movie.douban.com\/subject\/1292052\/",
    '<a href="https://movie.douban.com/subject/1292052/">肖申克的救赎</a>',
    "看这里：https://movie.douban.com/subject/1292052/，很好",
]

OTHER_URLS = [
    "https://book.douban.com/subject/1292052/",
    "https://music.douban.com/subject/1292052/",
    "https://www.douban.com/subject/1292052/",
    "https://www.douban.com/game/1292052/",
    "https://m.douban.com/book/subject/1292052/",
    "https://www.douban.com/doubanapp/dispatch?uri=/book/1292052",
    "https://www.douban.com/doubanapp/dispatch?uri=/group/topic/1292052",
    "douban://douban.com/book/1292052",
    "https://frodo.douban.com/api/v2/book/1292052",
    "https://movie.douban.com/review/1292052/",
    "https://movie.douban.com/celebrity/1292052/",
    "https://movie.douban.com/trailer/1292052/",
    "https://movie.douban.com/subject/999/",
    "https://movie.douban.com/subject/9999/",
    "https://movie.douban.com/subject/12920521292052129205/",
    "https://movie.douban.com/subject/1292052abc/",
    "https://movie.douban.com/subject/１２９２０５２/",
    "https://movie.douban.com.evil.example/subject/1292052/",
    "https://evilmovie.douban.com/subject/1292052/",
    "https://evil-movie.douban.com/subject/1292052/",
    "https://movie.douban.example/subject/1292052/",
    "https://movie.douban.com/",
    "1292052",
    "",
]


@pytest.mark.parametrize("url", FILM_URLS)
def test_film_urls(url: str) -> None:
    assert subject_ids(url) == [1292052]


@pytest.mark.parametrize("url", OTHER_URLS)
def test_other_urls(url: str) -> None:
    assert subject_ids(url) == []


def test_order_is_kept_and_duplicates_removed() -> None:
    urls = [
        "https://m.douban.com/movie/subject/30000/",
        "https://book.douban.com/subject/40000/ https://movie.douban.com/subject/10000/",
        "https://movie.douban.com/subject/30000/comments",
        "https://movie.douban.com/subject/20000/",
    ]
    assert subject_ids(urls) == [30000, 10000, 20000]
    assert subject_ids(" ".join(urls)) == [30000, 10000, 20000]


@given(st.text(max_size=300))
def test_any_text_gives_plausible_ids_once(text: str) -> None:
    found = subject_ids(text)
    assert len(found) == len(set(found))
    assert all(10_000 <= number < 10**10 for number in found)


@given(
    st.lists(st.integers(10_000, 10**10 - 1), max_size=6),
    st.integers(0, 2),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=20),
)
def test_every_id_written_into_a_text_is_read_back(ids: list[int], encoded: int, noise: str) -> None:
    texts = []
    for number in ids:
        url = f"https://movie.douban.com/subject/{number}/"
        for _ in range(encoded):
            url = quote(url, safe="")
        texts.append(f"https://www.douban.com/link2/?url={url}" if encoded else url)
    assert subject_ids([f"{url} {quote(noise)}" for url in texts]) == list(dict.fromkeys(ids))


@given(st.sampled_from(["book", "music", "www", "game", "evil.movie.x"]), st.integers(10_000, 10**9))
def test_no_other_host_gives_an_id(host: str, number: int) -> None:
    assert subject_ids(f"https://{host}.douban.com/subject/{number}/") == []

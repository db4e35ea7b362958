"""Subjects that the replay upstream answers with, and how its endpoints are asked."""

from __future__ import annotations

from urllib.parse import unquote


def subject(number, title, year, **more):
    return {
        "id": number, "title": title, "original_title": title, "aka": [], "year": year, "regions": ["中国大陆"],
        "languages": ["汉语普通话"], "directors": ["某导演"], "writers": [], "actors": ["甲", "乙"], "genres": ["剧情"],
        "duration_min": None, "episodes": None, "kind": "movie", "rating": None, "votes": None, "pubdates": [],
        "summary": "", **more,
    }  # fmt: skip


FAREWELL = subject(
    1291546, "霸王别姬", 1993, aka=["再见，我的妾", "Farewell My Concubine"], regions=["中国大陆", "中国香港"],
    directors=["陈凯歌"], actors=["张国荣", "张丰毅", "巩俐"], genres=["剧情", "爱情"], duration_min=171, rating=9.6,
    votes=2400000, pubdates=["1993-07-26(中国大陆)", "1993-01-01(中国香港)"], summary="两个伶人的半生。",
)  # fmt: skip
JOY = subject(25853071, "庆余年", 2019, kind="tv", episodes=46, duration_min=45, rating=8.0, votes=700000)
JOY2 = subject(34937650, "庆余年 第二季", 2024, kind="tv", episodes=36, aka=["庆余年2"], rating=7.2, votes=400000)
WAR = subject(1292223, "1917", 2019, original_title="1917", regions=["美国", "英国"], directors=["萨姆·门德斯"])
NOBODY = subject(30000001, "无人之地", 2020, directors=[], actors=[], regions=[], languages=[], genres=[])
ILL = subject(30000002, "病条目", 2021, fault="captcha")
OTHERS = [subject(31000000 + n, f"样片{chr(0x4E00 + 7 * n)}{chr(0x5200 + 5 * n)}", 2000 + n) for n in range(24)]
SUBJECTS = [FAREWELL, JOY, JOY2, WAR, NOBODY, ILL, *OTHERS]


def douban(client, server, number, **more):
    return client.get(server.douban_url, params={"id": number, **more})


def search(client, server, query):
    return client.get(server.search_url, params={"q": query, "format": "json"})


def web_search(client, server, query):
    return client.post(server.bocha_url, json={"query": query}, headers={"Authorization": "Bearer k"})


def subjects_in(page):
    """Ids of films in a page of results, in their order."""
    found = []
    for result in page["results"]:
        url = unquote(result["url"])
        for mark in ("movie.douban.com/subject/", "m.douban.com/movie/subject/", "uri=/movie/"):
            if mark in url:
                found.append(int(url.split(mark)[1].split("/")[0].split("?")[0].split("&")[0]))
    return list(dict.fromkeys(found))


SHEET = {"title": "霸王别姬", "year": 1993, "directors": ["陈凯歌"], "actors": ["张国荣", "张丰毅"], "kind": "film"}


def chat(client, server, content, **more):
    messages = [{"role": "system", "content": "写简介"}, {"role": "user", "content": content}]
    return client.post(
        server.llm_url, json={"model": "a/b", "messages": messages, **more}, headers={"Authorization": "Bearer k"}
    )

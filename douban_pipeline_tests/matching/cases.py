"""A film and a series of which everything is known, to be changed one field at a time."""

from __future__ import annotations

from douban_pipeline.matching import Kind, Subject, Video

FILM = Video(
    vod_id=1,
    title="让子弹飞",
    aliases=("Let the Bullets Fly",),
    year=2010,
    kind=Kind.FILM,
    regions=("大陆", "香港"),
    directors=("姜文",),
    actors=("姜文", "葛优", "周润发", "刘嘉玲"),
    genres=("剧情", "喜剧", "动作"),
    duration_minutes=132,
)
FILM_SUBJECT = Subject(
    douban_id=3742360,
    title="让子弹飞",
    original_title="讓子彈飛",
    aliases=("Let the Bullets Fly", "火烧云(台)"),
    year=2010,
    release_years=(2010,),
    kind=Kind.FILM,
    regions=("中国大陆", "中国香港"),
    directors=("姜文",),
    actors=("姜文", "葛优", "周润发", "刘嘉玲", "陈坤"),
    genres=("剧情", "喜剧", "动作", "西部"),
    duration_minutes=132,
    rating=9.0,
)
SERIES = Video(
    vod_id=2,
    title="庆余年 第二季",
    year=2024,
    kind=Kind.SERIES,
    regions=("大陆",),
    directors=("孙皓",),
    actors=("张若昀", "李沁", "陈道明"),
    genres=("剧情", "古装"),
    episodes=36,
)
SERIES_SUBJECT = Subject(
    douban_id=34937650,
    title="庆余年 第二季",
    aliases=("庆余年2",),
    year=2024,
    kind=Kind.SERIES,
    regions=("中国大陆",),
    directors=("孙皓",),
    actors=("张若昀", "李沁", "陈道明", "吴刚"),
    genres=("剧情", "古装"),
    episodes=36,
    rating=7.2,
)
THIN = Video(vod_id=3, title="白夜追凶", year=2017)
"""A title and a year: nobody is known, nor anything else."""
THIN_SUBJECT = Subject(douban_id=26_883_064, title="白夜追凶", year=2017)

"""Reading ``douban.php`` in the shapes its many implementations send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.errors import SourceError, SourceThrottled, SourceUnavailable, SourceWall
from douban_pipeline.douban.sources.douban_php import SubjectRecord, parse_subject
from douban_pipeline.douban.sources.errors import SubjectMismatch, SubjectMissing

ASKED = 24773958

DATA: dict[str, Any] = {
    "vod_name": "复仇者联盟3：无限战争",
    "vod_sub": "复联3,复仇者联盟：无限之战(台)",
    "vod_pic": "https://img3.doubanio.com/view/photo/p2517753454.jpg",
    "vod_year": "2018",
    "vod_lang": "英语",
    "vod_area": "美国",
    "vod_class": "动作,科幻,奇幻,冒险",
    "vod_director": "安东尼·罗素,乔·罗素",
    "vod_writer": "克里斯托弗·马库斯 / 斯蒂芬·麦克菲利",
    "vod_actor": "小罗伯特·唐尼,克里斯·埃文斯,内详",
    "vod_pubdate": "2018-05-11(中国大陆) / 2018-04-27(美国)",
    "vod_total": "",
    "vod_duration": "150",
    "vod_douban_score": "8.4",
    "vod_score": "3.0",
    "vod_score_num": "645,101",
    "vod_score_all": "1935303",
    "vod_state": "正片",
    "vod_author": "小豆",
    "vod_content": "灭霸收集六颗宝石。<br>众英雄&ldquo;集结&rdquo;。",
    "vod_tag": "漫威,科幻",
    "vod_behind": "Avengers: Infinity War",
    "vod_reurl": "https://movie.douban.com/subject/24773958/",
}

RECORD = SubjectRecord(
    douban_id=ASKED,
    title="复仇者联盟3：无限战争",
    original_title="Avengers: Infinity War",
    aliases=("复联3", "复仇者联盟：无限之战(台)"),
    year=2018,
    release_dates=("2018-05-11(中国大陆)", "2018-04-27(美国)"),
    regions=("美国",),
    languages=("英语",),
    genres=("动作", "科幻", "奇幻", "冒险"),
    directors=("安东尼·罗素", "乔·罗素"),
    writers=("克里斯托弗·马库斯", "斯蒂芬·麦克菲利"),
    actors=("小罗伯特·唐尼", "克里斯·埃文斯"),
    duration_minutes=150,
    episodes=None,
    rating=8.4,
    votes=645_101,
    summary="灭霸收集六颗宝石。\n众英雄“集结”。",
    picture="https://img3.doubanio.com/view/photo/p2517753454.jpg",
    tags=("漫威", "科幻"),
    state="正片",
    author="小豆",
    url="https://movie.douban.com/subject/24773958/",
    id_confirmed=True,
)

ENVELOPE = json.dumps({"code": 1, "msg": "ok", "data": DATA}, ensure_ascii=False)


@pytest.mark.parametrize(
    "body",
    [
        ENVELOPE,
        "\ufeff" + ENVELOPE,
        "\n " + ENVELOPE + "\n",
        f"douban({ENVELOPE});",
        f"DouBan( {ENVELOPE} )",
        f"/**/ jQuery321_17({ENVELOPE});\n",
        f"window.cb({ENVELOPE})",
        json.dumps({"code": "1", "data": DATA}),
        json.dumps({"status": "200", "data": DATA}),
        json.dumps({"code": 0, "data": DATA}),
        json.dumps({"data": DATA}),
        json.dumps({"code": 1, "data": [DATA]}),
        json.dumps(DATA),
        json.dumps({"code": 1, **DATA}),
    ],
)
def test_every_envelope_gives_the_same_record(body: str) -> None:
    assert parse_subject(body.encode(), ASKED) == RECORD


def test_an_old_script_answers_in_gbk() -> None:
    body = json.dumps({"code": 1, "data": {"vod_name": "无间道"}}, ensure_ascii=False).encode("gbk")
    assert parse_subject(body, 1307914).title == "无间道"


def test_what_is_missing_stays_missing() -> None:
    empty = dict.fromkeys(DATA, "") | {"vod_name": "片", "vod_douban_score": "0.0", "vod_year": "0"}
    assert parse_subject(json.dumps(empty).encode(), ASKED) == SubjectRecord(ASKED, "片")
    placeholders = dict.fromkeys(DATA, "内详") | {"vod_name": "片", "vod_actor": "未知主演"}
    assert parse_subject(json.dumps(placeholders).encode(), ASKED) == SubjectRecord(ASKED, "片")


def test_people_are_read_without_their_roles() -> None:
    data = {
        "vod_name": "片",
        "vod_actor": "周迅 饰演 甲,陈坤 扮演 乙",
        "vod_director": "张导",
        "vod_writer": "李编 as 丙",
    }
    record = parse_subject(json.dumps(data).encode(), ASKED)
    assert (record.actors, record.writers) == (("周迅", "陈坤"), ("李编",))


def test_a_random_score_is_no_rating() -> None:
    assert parse_subject(json.dumps({"vod_name": "片", "vod_score": "3.0"}).encode(), ASKED).rating is None


@pytest.mark.parametrize(
    ("fields", "votes"),
    [
        ({"vod_score_num": 1234}, 1234),
        ({"vod_score_num": "1234"}, 1234),
        ({"vod_score_num": "2,562,776"}, 2_562_776),
        ({"vod_score_num": "１２３４人评价"}, 1234),
        ({"vod_score_num": "(1234人评价)"}, 1234),
        ({"vod_score_num": "约12.3万人评价"}, 123_000),
        ({"vod_score_num": "256万"}, 2_560_000),
        ({"rating": {"value": 8.4, "count": 1234}}, 1234),
        ({"rating": {"average": "8.4", "numRaters": "1234"}}, 1234),
        ({"ratings_count": 1234, "rating": {}}, 1234),
        ({"vod_score_num": "", "rating": {"count": 9}}, 9),
        ({"vod_score_num": "0"}, None),
        ({"vod_score_num": ""}, None),
        ({"vod_score_num": "暂无"}, None),
        ({"vod_score_num": "-5"}, None),
        ({"vod_score_num": "3.5"}, None),
        ({"vod_score_num": "12,34"}, None),
        ({"vod_score_num": True}, None),
        ({"vod_score_num": "1234 / 5678"}, None),
        ({"vod_score_num": "9" * 20}, None),
        ({"rating": "8.4"}, None),
        ({"rating": [1, 2]}, None),
    ],
)
def test_how_many_people_rated(fields: dict[str, Any], votes: int | None) -> None:
    rated = {"vod_name": "片", "vod_douban_score": "8.4", **fields}
    assert parse_subject(json.dumps(rated).encode(), ASKED).votes == votes
    # Where Douban has no rating, scripts make the number up.
    for unrated in ("", "0.0", "暂无"):
        record = parse_subject(json.dumps({**rated, "vod_douban_score": unrated}).encode(), ASKED)
        assert (record.rating, record.votes) == (None, None)


@pytest.mark.parametrize("title", ["未知", "无", "0"])
def test_a_film_may_be_called_like_a_placeholder(title: str) -> None:
    assert parse_subject(json.dumps({"vod_name": title}).encode(), ASKED).title == title


@pytest.mark.parametrize("picture", ["javascript:alert(1)", "p.jpg", "http://a b", "//x\"onerror='"])
def test_a_picture_is_an_address_or_nothing(picture: str) -> None:
    assert parse_subject(json.dumps({"vod_name": "片", "vod_pic": picture}).encode(), ASKED).picture == ""


@pytest.mark.parametrize(
    ("identity", "confirmed"),
    [
        ({"vod_douban_id": ASKED}, True),
        ({"vod_douban_id": str(ASKED)}, True),
        ({"vod_reurl": f"https://m.douban.com/movie/subject/{ASKED}/?x=1"}, True),
        ({"vod_douban_id": ASKED, "vod_reurl": f"https://movie.douban.com/subject/{ASKED}/"}, True),
        ({"vod_douban_id": 0, "vod_reurl": ""}, False),
        ({"vod_reurl": "https://bgm.tv/subject/1234567"}, False),
        ({}, False),
    ],
)
def test_the_id_in_the_answer_confirms_it(identity: dict[str, Any], confirmed: bool) -> None:
    record = parse_subject(json.dumps({"vod_name": "片", **identity}).encode(), ASKED)
    assert (record.douban_id, record.id_confirmed) == (ASKED, confirmed)


@pytest.mark.parametrize(
    "identity",
    [
        {"vod_douban_id": 1292052},
        {"vod_douban_id": "1292052"},
        {"vod_reurl": "https://movie.douban.com/subject/1292052/"},
        {"vod_douban_id": ASKED, "vod_reurl": "https://movie.douban.com/subject/1292052/"},
    ],
)
def test_another_subject_is_refused(identity: dict[str, Any]) -> None:
    with pytest.raises(SubjectMismatch, match="1292052"):
        parse_subject(json.dumps({"code": 1, "data": {"vod_name": "片", **identity}}).encode(), ASKED)


LOGIN_PAGE = "<!DOCTYPE html><html><title>登录豆瓣</title></html>"
CAPTCHA_PAGE = "<html>检测到有异常请求从你的 IP 发出，请<a href='https://accounts.douban.com'>登录</a>使用豆瓣</html>"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (LOGIN_PAGE, SourceWall),
        (CAPTCHA_PAGE, SourceWall),
        ("<html><body>请输入验证码</body></html>", SourceWall),
        ("<script>location='https://sec.douban.com/b?r=x'</script>", SourceWall),
        ("检测到有异常请求", SourceWall),
        ({"code": 102, "msg": "检测到有异常请求"}, SourceWall),
        ({"code": 102, "msg": "请先登录"}, SourceWall),
        ({"code": 403, "msg": "禁止"}, SourceWall),
        ({"code": 1309, "msg": "subject_ip_rate_limit"}, SourceWall),
        ({"code": 103, "msg": "need_login"}, SourceWall),
        ({"code": 4, "msg": "需要登录"}, SourceWall),
        ("<html>error code: 004</html>", SourceWall),
        ({"code": 112, "msg": "rate_limit_exceeded2"}, SourceThrottled),
        ({"code": 1080, "msg": "search_access_rate_limit"}, SourceThrottled),
        ({"code": 2, "msg": "请求过于频繁"}, SourceThrottled),
        ({"code": 429}, SourceThrottled),
        ({"code": 404, "msg": "not found"}, SubjectMissing),
        ({"code": 102, "msg": "条目不存在"}, SubjectMissing),
        ({"code": 2, "msg": "影片不存在或已删除", "data": {}}, SubjectMissing),
        ({"code": 400, "msg": "Subject Not Found"}, SubjectMissing),
        ({"code": 1, "msg": "条目已被删除或因法律法规无法显示"}, SubjectMissing),
        ({"code": 0, "msg": "该条目已经被删除，或者因法律法规无法显示。"}, SubjectMissing),
        ({"code": 0, "msg": "你想访问的条目豆瓣不收录"}, SubjectMissing),
        ({"code": 0, "msg": "根据相关法律法规，当前条目正在等待审核"}, SubjectMissing),
        ({"code": 0, "msg": "你想访问的页面不存在"}, SubjectMissing),
        ({"code": 0, "msg": "根据法律法规，本接口停止服务"}, SourceUnavailable),
        ({"code": 0, "msg": "用户已被删除"}, SourceUnavailable),
        ({"code": 104, "msg": "invalid_apikey"}, SourceUnavailable),
        ({"code": 404, "msg": "控制器不存在"}, SourceUnavailable),
        ({"code": 404, "msg": "api not found"}, SourceUnavailable),
        ({"code": 2, "msg": "key不存在"}, SourceUnavailable),
        ({"code": 102, "msg": "服务器错误"}, SourceUnavailable),
        ({"code": 2, "msg": "x", "data": DATA}, SourceUnavailable),
        ({"code": "error", "data": DATA}, SourceUnavailable),
        ({"code": 1, "data": []}, SourceUnavailable),
        ({"code": 1, "data": None}, SourceUnavailable),
        ({"code": 1, "data": {}}, SourceUnavailable),
        ({"code": 1, "data": {"vod_name": " &nbsp; "}}, SourceUnavailable),
        ({"code": 1, "data": {"vod_name": None, "vod_year": "2018"}}, SourceUnavailable),
        ({}, SourceUnavailable),
        ([], SourceUnavailable),
        ('"text"', SourceUnavailable),
        ("<br />\n<b>Warning</b>: fopen() in douban.php", SourceUnavailable),
        (ENVELOPE[:80], SourceUnavailable),
        ('{"vod_name": NaN}', SourceUnavailable),
        ("[" * 100_000, SourceUnavailable),
        (b"\xff\xfe\x81", SourceUnavailable),
    ],
)
def test_what_is_no_subject_is_an_error_of_its_kind(body: Any, kind: type[SourceError]) -> None:
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    with pytest.raises(SourceError) as caught:
        parse_subject(raw, ASKED)
    assert type(caught.value) is kind
    assert caught.value.reason


def test_a_film_about_captchas_is_no_wall() -> None:
    data = {"vod_name": "验证码", "vod_content": "请登录 accounts.douban.com，检测到有异常请求"}
    assert parse_subject(json.dumps({"code": 1, "data": data}, ensure_ascii=False).encode(), ASKED).title == "验证码"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*DATA, "vod_douban_id", "code", "msg", "data"]), JSON))
def test_any_json_is_a_record_or_a_source_error(answer: dict[str, Any]) -> None:
    try:
        record = parse_subject(json.dumps(answer).encode(), ASKED)
    except SourceError:
        return
    assert record.title
    assert record.douban_id == ASKED


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_a_source_error(body: bytes) -> None:
    with pytest.raises(SourceError):
        parse_subject(body, ASKED)

"""People, regions, kinds, years, lengths: what agrees, what does not, what cannot be known."""

from __future__ import annotations

import pytest

from douban_pipeline.matching import Kind, Subject, Video, fields, kinds, people


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        (("张艺谋",), ("張藝謀",), True),
        (("王 菲",), ("王菲",), True),
        (("让-吕克·戈达尔",), ("让·吕克·戈达尔",), True),
        (("阿尔伯特·芬尼",), ("艾伯特·芬尼",), True),
        (("丹尼尔·雷德克里夫",), ("丹尼尔•拉德克利夫",), True),
        (("CHRISTOPHER NOLAN",), ("Christopher Nolan",), True),
        (("Kurosawa Akira",), ("Akira Kurosawa",), True),
        (("白井悠介 Yusuke Shirai",), ("白井悠介",), True),
        (("渡辺歩",), ("渡边步",), True),
        (("黄渤 饰 老板",), ("黄渤",), True),
        (("甲乙", "丙丁"), ("丙丁",), True),
        (("周星驰",), ("周星星",), False),
        (("李安",), ("李安安",), False),
        (("乔尔·科恩",), ("伊桑·科恩",), False),
        (("克里斯托弗·诺兰",), ("斯坦利·库布里克",), False),
        (("安杰伊·茹瓦夫斯基",), ("安德烈·祖拉斯基",), False),
        (("斯皮尔伯格",), ("史蒂文·斯皮尔伯格",), None),
        (("Luis Buñuel",), ("路易斯·布努埃尔",), None),
        (("ヤマサキオサム",), ("山崎理",), None),
        ((), ("张艺谋",), None),
        ((), (), None),
    ],
)
def test_people(a, b, agree):
    assert people.overlap(a, b).agree is agree
    assert people.overlap(b, a).agree is agree


@pytest.mark.parametrize(
    ("a", "b", "foreign"),
    [
        (("安杰伊·茹瓦夫斯基",), ("安德烈·祖拉斯基",), True),
        (("Luis Buñuel",), ("斯坦利·库布里克",), True),
        (("姜文",), ("安德烈·祖拉斯基",), False),
        (("安杰伊·茹瓦夫斯基", "姜文"), ("安德烈·祖拉斯基",), False),
        (("姜文",), ("姜武",), False),
    ],
)
def test_lists_of_transliterations_alone_are_known_as_such(a, b, foreign):
    assert people.overlap(a, b).transliterated is foreign


def test_each_person_is_counted_once():
    found = people.overlap(("张三", "张三", "李四"), ("张三", "王五", "王五"))
    assert (found.matched, found.left, found.right) == (1, 2, 2)


@pytest.mark.parametrize(
    ("listed", "people_of_both"),
    [
        (("周迅 饰 甲", "陈坤 饰 乙"), 2),
        (("周迅 Xun Zhou", "陈坤 Kun Chen"), 2),
        (("周迅 饰演 女主角", "陈坤 扮演 乙"), 2),
        (("周迅饰演女主角 ", "陈坤（配音）"), 2),
        (("周迅 陈坤",), 2),
        (("周迅 配音", "乙：陈坤"), 2),
        (("周迅 李安",), 0),
    ],
)
def test_roles_and_spaces_between_people_are_no_part_of_names(listed, people_of_both):
    assert people.overlap(listed, ("周迅", "陈坤")).matched == people_of_both
    assert people.overlap(("周迅", "陈坤"), listed).matched == people_of_both


def test_a_space_within_a_name_is_none_between_people():
    assert people.overlap(("新垣 结衣",), ("新垣结衣", "长泽雅美")).matched == 1
    assert people.overlap(("索菲娅 科波拉",), ("科波拉",)).matched == 0


def test_family_names_alone_do_not_agree():
    assert people.overlap(("索菲亚·科波拉",), ("弗朗西斯·科波拉",)).agree is not True


@pytest.mark.parametrize(
    ("a", "b", "outcome", "firm"),
    [
        (("美国", "英国"), ("英国", "法国"), True, True),
        (("大陆",), ("美国",), False, False),
        (("其它",), ("美国",), None, False),
        (("日韩",), ("日本",), True, False),
        ((), ("美国",), None, False),
    ],
)
def test_regions(a, b, outcome, firm):
    assert fields.compare_regions(a, b)[:2] == (outcome, firm)
    assert fields.compare_regions(b, a)[:2] == (outcome, firm)


@pytest.mark.parametrize(
    ("a", "b", "weak"),
    [
        pytest.param("欧美", "美国", True, id="a wide group that covers it"),
        pytest.param("欧美", "日本", True, id="a wide group that does not"),
        pytest.param("港台", "大陆", True, id="a narrow group that does not"),
        pytest.param("欧美", "亚洲", True, id="two groups"),
        pytest.param("大陆,火星", "美国", True, id="another region and a word nobody knows"),
        pytest.param("港台", "香港", False, id="a narrow group that covers it agrees"),
        pytest.param("大陆", "美国", False, id="two regions conflict"),
        pytest.param("其它", "美国", False, id="other says nothing"),
        pytest.param("火星", "美国", False, id="a word nobody knows says nothing"),
        pytest.param("欧美", "", False, id="one side is unknown"),
    ],
)
def test_a_group_of_regions_conflicts_weakly(a, b, weak):
    left, right = (tuple(filter(None, [words])) for words in (a, b))
    assert fields.compare_regions(left, right).weak is weak
    assert fields.compare_regions(right, left).weak is weak


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        (Kind.FILM, Kind.FILM, True),
        (Kind.FILM, Kind.SERIES, False),
        (Kind.FILM, Kind.VARIETY, False),
        (Kind.VARIETY, Kind.ANIMATION, False),
        (Kind.SERIES, Kind.VARIETY, None),
        (Kind.ANIMATION, Kind.FILM, None),
        (Kind.ANIMATION, Kind.SERIES, None),
        (Kind.ANIMATION, Kind.ANIMATION, True),
        (Kind.DOCUMENTARY, Kind.FILM, None),
        (Kind.DOCUMENTARY, Kind.SERIES, None),
        (Kind.SHORT, Kind.FILM, None),
        (None, Kind.FILM, None),
        (None, None, None),
    ],
)
def test_kinds(a, b, agree):
    assert kinds.agree(Video(1, "", kind=a), Subject(1, "", kind=b)) is agree
    assert kinds.agree(Video(1, "", kind=b), Subject(1, "", kind=a)) is agree


@pytest.mark.parametrize(
    ("video", "subject", "agree"),
    [
        # What animation, documentary and short leave open, episodes and lengths tell.
        ({"kind": Kind.ANIMATION, "episodes": 24}, {"kind": Kind.FILM}, False),
        ({"kind": Kind.ANIMATION, "episodes": 24}, {"kind": Kind.ANIMATION, "duration_minutes": 98}, False),
        ({"kind": Kind.ANIMATION, "episodes": 24}, {"kind": Kind.ANIMATION, "episodes": 26}, True),
        ({"kind": Kind.ANIMATION, "duration_minutes": 98}, {"kind": Kind.FILM}, True),
        ({"kind": Kind.ANIMATION, "duration_minutes": 24}, {"kind": Kind.FILM}, None),
        ({"kind": Kind.ANIMATION, "episodes": 1}, {"kind": Kind.SERIES}, None),
        ({"kind": Kind.DOCUMENTARY, "episodes": 8}, {"serial": True}, True),
        ({"kind": Kind.FILM}, {"serial": True}, False),
        ({"kind": Kind.FILM}, {"serial": True, "duration_minutes": 120}, False),
        ({"kind": Kind.SERIES}, {"serial": False, "episodes": 24}, False),
        ({"kind": Kind.SERIES}, {"kind": Kind.FILM, "serial": True}, True),
        ({"kind": Kind.SERIES}, {}, None),
        ({"episodes": 24}, {"kind": Kind.SERIES}, True),
        ({"kind": Kind.VARIETY}, {"kind": Kind.SERIES, "serial": True}, None),
        ({"kind": Kind.SHORT, "episodes": 80}, {"kind": Kind.SHORT, "episodes": 100}, True),
    ],
)
def test_formats(video, subject, agree):
    assert kinds.agree(Video(1, "", **video), Subject(1, "", **subject)) is agree


@pytest.mark.parametrize(
    ("kind", "words", "animated"),
    [
        (Kind.ANIMATION, set(), True),
        (Kind.FILM, {"动画"}, True),
        (Kind.FILM, {"剧情"}, False),
        (Kind.FILM, set(), None),
        (None, set(), None),
    ],
)
def test_what_is_animated(kind, words, animated):
    assert kinds.animated(kind, frozenset(words)) is animated


@pytest.mark.parametrize(
    ("local", "year", "releases", "gap"),
    [
        ((2010,), 2010, (), fields.YearGap(0, True, 0)),
        ((2011,), 2010, (), fields.YearGap(1, True, 1)),
        ((2012,), 2010, (2012,), fields.YearGap(2, True, 2)),
        ((2011,), 1987, (1987, 2011), fields.YearGap(0, False, 24)),
        ((2013,), 2010, (2010,), fields.YearGap(3, True, 3)),
        ((2000,), 1987, (2011,), fields.YearGap(11, False, 13)),
        ((2010,), None, (2010, 2018), fields.YearGap(0, True, 0)),
        ((2018,), None, (2010, 2018), fields.YearGap(0, False, 8)),
        ((), 2010, (), None),
        ((2010,), None, (), None),
    ],
)
def test_years(local, year, releases, gap):
    assert fields.year_gap(local, year, releases) == gap


@pytest.mark.parametrize(
    ("kind", "minutes", "episodes", "agree", "far"),
    [
        (Kind.FILM, (120, 118), (None, None), True, False),
        (Kind.FILM, (30, 33), (None, None), True, False),
        (Kind.FILM, (120, 105), (None, None), None, False),
        (Kind.FILM, (120, 80), (None, None), False, True),
        (Kind.FILM, (None, 80), (None, None), None, False),
        (Kind.FILM, (120, 120), (1, 1), True, False),
        (Kind.SERIES, (45, 45), (None, None), None, False),
        (Kind.SERIES, (45, 45), (24, 24), True, False),
        (Kind.SERIES, (45, 45), (24, 26), False, False),
        (Kind.SERIES, (45, 45), (12, 24), False, True),
        (None, (45, 45), (12, None), None, False),
    ],
)
def test_lengths(kind, minutes, episodes, agree, far):
    found = fields.compare_lengths(kind, minutes, episodes)
    assert (found.agree, found.far) == (agree, far)

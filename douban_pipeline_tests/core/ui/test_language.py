import pytest

from douban_pipeline.core.ui.language import chosen_language, has_chinese, one_language, one_side

MANUAL = """\
复查关联 · Have links judged again.

{link}：
填写 `reviewer`。

**字段** · Fields（至少一项）

{fields}

什么都不写入。

Nothing is written.

```yaml
ops: 小王
```
"""


@pytest.mark.parametrize(("given", "language"), [("zh", "zh"), (" EN ", "en"), ("", None), (None, None), ("fr", None)])
def test_the_environment_chooses_one_of_two_languages(given, language):
    assert chosen_language({"DOUBAN_PIPELINE_LANGUAGE": given}) == language


@pytest.mark.parametrize(("wanted", "shown"), [("zh", "影片"), ("en", "The videos")])
def test_half_of_a_text_in_both_languages_is_shown(wanted, shown):
    assert one_side("影片 · The videos", wanted) == shown
    assert one_side("only one · language", wanted) == "only one · language"


def test_a_manual_says_everything_in_one_language():
    chinese, english = one_language(MANUAL, "zh"), one_language(MANUAL, "en")
    assert "Nothing" not in chinese
    assert "Have links" not in chinese
    assert all(part in chinese for part in ("复查关联", "{link}", "填写", "**字段**", "{fields}", "不写入", "小王"))
    assert not has_chinese(english)
    assert all(part in english for part in ("Have links judged again.", "{link}", "{fields}", "Nothing", "小王"))


def test_code_says_nothing_of_a_language():
    assert has_chinese("写")
    assert not has_chinese("the list `待核查`")

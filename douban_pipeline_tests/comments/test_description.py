"""The description of the API says what is sent, who may call, and how refusals look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from douban_pipeline.comments import answers
from douban_pipeline.comments.api import admin_models
from douban_pipeline_tests.comments.serving import ADMIN, KEY, Served, served


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("described"), guests=True) as found:
        yield found


@pytest.fixture(scope="module")
def operations(place: Served) -> dict[str, dict[str, Any]]:
    """All operations by ``METHOD path``, without the prefix that they have in common."""
    described = place.client.get("/comments/openapi.json").json()
    return {
        f"{method.upper()} {path.removeprefix('/comments/v1')}": {**operation, "all": described}
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }


def test_every_operation_declares_its_answers_its_refusals_and_who_may_call_it(operations):
    names = [operation["operationId"] for operation in operations.values()]
    assert len(set(names)) == len(names)
    assert {"view_page", "notices_count", "server_comments"} <= set(names)
    for name, operation in operations.items():
        schemes = operation["all"]["components"]["securitySchemes"]
        assert operation["security"], name
        assert {scheme for each in operation["security"] for scheme in each} <= set(schemes), name
        content = operation["responses"]["4XX"]["content"]["application/problem+json"]
        assert content["schema"] == {"$ref": "#/components/schemas/ProblemAnswer"}, name
        assert "422" not in operation["responses"], name
        good = [answer for status, answer in operation["responses"].items() if status in ("200", "201", "202")]
        kinds = [(kind, each) for answer in good for kind, each in answer.get("content", {}).items()]
        assert kinds or "204" in operation["responses"], name
        assert all(each["schema"] for kind, each in kinds if kind == "application/json"), name


def _asked(place: Served) -> list[tuple[str, str, str, int | str | None, dict[str, Any], type]]:
    """Requests with what they are described to answer, in a section where everything has happened."""
    film = place.section(owner_id=1)
    section, text = f"/sections/1/{film}", {"content": "看 [em:3] ||秘密|| 1:02 @三:3 https://a.example/x"}
    root = place.publish(2, film, text["content"])
    place.work()
    reply = place.publish(3, film, "回", root)
    place.work()
    place.publish(4, film, "再回", reply)
    place.call("PUT", f"/comments/{root}/vote", 3, json={"value": 1})
    place.call("PUT", f"/comments/{root}/pin", 1, json={"on": True})
    place.work()
    view = place.page(film)["view"]
    of, decided = f"/comments/{root}", {"ids": [reply], "status": 1, "reason": "再看"}
    return [
        ("GET", "/sections/{kind}/{object_id}/page", f"{section}/page", None, {}, answers.SectionPage),
        ("GET", "/sections/{kind}/{object_id}/page", f"{section}/page", 3, {}, answers.SectionPage),
        ("GET", "/comments/{comment_id}/replies", f"{of}/replies", 3, {}, answers.RepliesPage),
        ("GET", "/sections/{kind}/{object_id}/page", f"{section}/page?device=phone", 3, {}, answers.PhonePage),
        ("GET", "/comments/{comment_id}/replies", f"{of}/replies?device=phone", None, {}, answers.PhoneReplies),
        ("GET", "/comments/{comment_id}/dialog", f"/comments/{reply}/dialog", None, {}, answers.DialogPage),
        ("GET", "/counts", f"/counts?of=1:{film},1:9", None, {}, answers.Counts),
        ("POST", "/sections/{kind}/{object_id}/comments", f"{section}/comments", 2, text, answers.Published),
        ("GET", "/comments/{comment_id}/outcome", f"{of}/outcome", 2, {}, answers.Outcome),
        ("POST", "/preview", "/preview", None, text, answers.Preview),
        ("GET", "/me", "/me", 2, {}, answers.Me),
        ("PUT", "/comments/{comment_id}/vote", f"{of}/vote", 2, {"value": 1}, answers.Accepted),
        ("POST", "/comments/{comment_id}/report", f"{of}/report", 4, {}, answers.Accepted),
        ("PATCH", "/comments/{comment_id}", of, 2, text, answers.Edited),
        ("PATCH", "/sections/{kind}/{object_id}", section, 1, {"closed": False}, answers.Accepted),
        ("POST", "/impressions", "/impressions", 5, {"ids": [root], "view": view}, answers.Counted),
        ("GET", "/notices", "/notices", 2, {}, answers.Notices),
        ("GET", "/notices/count", "/notices/count", 2, {}, answers.Unread),
        ("POST", "/notices/read", "/notices/read", 2, {"upto": "9"}, answers.Marked),
        ("GET", "/server/counts", f"/server/counts?of=1:{film}", KEY, {}, answers.Counts),
        ("GET", "/server/comments", f"/server/comments?ids={root},{reply}", KEY, {}, answers.ServedComments),
        ("GET", "/admin/search", "/admin/search?text=看", ADMIN, {}, admin_models.FoundPage),
        ("GET", "/admin/comments/{comment_id}", f"/admin{of}", ADMIN, {}, admin_models.ExplainedComment),
        ("POST", "/admin/moderate", "/admin/moderate", ADMIN, {**decided, "dry_run": True}, admin_models.Moderated),
        ("POST", "/admin/moderate", "/admin/moderate", ADMIN, {**decided, "dry_run": False}, admin_models.Moderated),
        ("POST", "/admin/undo", "/admin/undo", ADMIN, {"ids": [reply]}, admin_models.Undone),
        ("GET", "/admin/session", "/admin/session", ADMIN, {}, admin_models.Moderator),
        ("GET", "/admin/words", "/admin/words", ADMIN, {}, admin_models.WordsPage),
        ("GET", "/admin/trust", "/admin/trust", ADMIN, {}, admin_models.TrustPage),
        ("GET", "/admin/rules", "/admin/rules", ADMIN, {}, admin_models.RulesPage),
        ("GET", "/admin/log", "/admin/log", ADMIN, {}, admin_models.LogPage),
        ("GET", "/admin/state", "/admin/state", ADMIN, {}, admin_models.ServiceState),
        ("PUT", "/server/sections/{kind}/{object_id}", f"/server{section}", KEY, {"title": "片"}, answers.MadeSection),
    ]


def test_what_is_sent_is_what_is_described(place, operations):
    for method, template, path, user, body, model in _asked(place):
        answer = place.call(method, path, user, **({"json": body} if method != "GET" else {}))
        described = operations[f"{method} {template}"]["responses"][str(answer.status_code)]
        schema = described["content"]["application/json"]["schema"]
        assert {"$ref": f"#/components/schemas/{model.__name__}"} in schema.get("anyOf", [schema]), path
        kept = TypeAdapter(model).validate_json(answer.content)
        assert TypeAdapter(model).dump_python(kept, mode="json") == answer.json(), path


def test_phones_get_half_as_much_and_what_a_small_list_shows(place):
    film = place.section()
    roots = [place.publish(user, film, f"第 {user} 条评论，好看得很") for user in range(2, 9)]
    place.work()
    below = [place.publish(user, film, f"回 {user}", roots[0]) for user in range(3, 6)]
    place.work()
    path = f"/sections/1/{film}/page?sort=floor"
    whole, small = place.call("GET", path), place.call("GET", f"{path}&device=phone")
    assert [each["id"] for each in small.json()["items"]] == roots
    first = small.json()["items"][0]
    assert first.keys() == {"id", "author", "at", "pieces", "replies", "preview"}
    assert [reply["id"] for reply in first["preview"]] == below[-1:]
    assert first["replies"] == 3
    sizes = [len(answer.content) - len(answer.json()["view"]) for answer in (small, whole)]
    assert sizes[0] < 0.6 * sizes[1], sizes


@pytest.mark.parametrize(
    ("method", "path", "given", "status"),
    [
        ("POST", "/preview", {"content": b"\xd0X\xff"}, 400),
        ("POST", "/preview", {"content": b"{"}, 400),
        ("GET", "/sections/1/0/page", {}, 400),
        ("GET", "/comments/5/replies?cursor=x", {}, 400),
        ("PUT", "/comments/5/vote", {"json": {"value": 2}}, 400),
        ("GET", "/comments/5/dialog", {}, 404),
        ("GET", "/comments/8999999999999999999/replies", {}, 404),
        ("GET", "/server/counts?of=1:1", {}, 401),
    ],
)
def test_a_refusal_is_a_problem_whatever_is_wrong(place, method, path, given, status):
    answer = place.call(method, path, headers={"Content-Type": "application/json"}, **given)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert TypeAdapter(answers.ProblemAnswer).validate_json(answer.content)["status"] == status


def test_a_path_names_all_its_methods_to_those_who_use_another(place):
    assert place.call("PUT", "/comments/5/report").headers["allow"] == "POST, DELETE"

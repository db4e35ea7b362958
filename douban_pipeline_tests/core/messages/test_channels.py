"""Every channel over real HTTP and SMTP: what it sends, what each refusal means, and what is given away."""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from douban_pipeline.core.messages.channels import KINDS, read_channels
from douban_pipeline.core.messages.types import Channel, DeliveryError, Message
from douban_pipeline_tests.stand_ins.push_server import A_MINUTE, CHAT, KEY, SECRET, PushServer
from douban_pipeline_tests.stand_ins.smtp_server import PASSWORD, USER, SmtpServer

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
URL = "https://example.com/daily/2026-11-20"
REPORT = Message("【日报】2026-11-20：3 条机会", "第一条\n第二条", "report", "report:2026-11-20", NOW, URL, "0" * 40)
ROBOTS = [kind for kind in KINDS if kind != "email"]


@pytest.fixture
def platforms() -> Iterator[PushServer]:
    with PushServer(now=NOW.timestamp) as server:
        yield server


@pytest.fixture
def mail() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        yield server


def one(setting: str, seconds: float = 5.0) -> Channel:
    [channel] = read_channels(setting, seconds=seconds).values()
    return channel


def send(channel: Channel, message: Message = REPORT, now: datetime = NOW) -> list[str]:
    return [channel.send(part, now=now) for part in channel.parts(message)]


def refusal(channel: Channel, now: datetime = NOW) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        send(channel, now=now)
    written = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    for secret in (KEY, SECRET, PASSWORD, CHAT):
        assert secret not in written
    return caught.value


@pytest.mark.parametrize("kind", ROBOTS)
def test_every_platform_takes_a_report(platforms: PushServer, kind: str) -> None:
    [response] = send(one(platforms.channel(kind)))
    [taken] = platforms.taken
    assert (taken.kind, taken.title, taken.text, taken.url) == (kind, REPORT.title, REPORT.text, URL)
    assert KEY not in response
    assert SECRET not in response


@pytest.mark.parametrize("kind", ROBOTS)
def test_every_platform_takes_a_long_report_in_parts(platforms: PushServer, kind: str) -> None:
    text = "\n".join(f"第 {number} 条：" + '引"号"与\\反斜杠😀' * 20 for number in range(80))
    send(one(platforms.channel(kind)), Message("日报", text, "report", "c", NOW, URL, "0" * 40))
    assert not platforms.refused
    assert "".join(each.text for each in platforms.taken).replace("\n", "") == text.replace("\n", "")


def test_the_platforms_that_replace_a_message_by_its_key_are_given_it(platforms: PushServer) -> None:
    for kind in ("bark", "ntfy", "webhook"):
        send(one(platforms.channel(kind)))
    keys = [each.body.get("id") or each.body.get("sequence_id") or each.body.get("key") for each in platforms.taken]
    assert keys == [REPORT.key] * 3


WRONG = {
    "wecom": ("key=demo", "key=other", 93000),
    "dingtalk": ("access_token=demo", "access_token=other", 300001),
    "feishu": ("/hook/demo", "/hook/other", 19001),
    "serverchan": ("/demo", "/other", 40001),
    "bark": ("/demo", "/other", 400),
    "telegram": ("/botdemo", "/botother", 401),
    "ntfy": ("#SEC", "#OTHER", 401),
    "webhook": ("#SEC", "#OTHER", 401),
}


@pytest.mark.parametrize("kind", ROBOTS)
def test_a_wrong_key_is_a_refusal_for_certain(platforms: PushServer, kind: str) -> None:
    right, wrong, code = WRONG[kind]
    error = refusal(one(platforms.channel(kind).replace(right, wrong)))
    assert str(code) in str(error)
    assert error.reached
    assert not error.uncertain
    assert not platforms.taken


@pytest.mark.parametrize(("kind", "code"), [("dingtalk", 310000), ("feishu", 19021)])
def test_a_signature_that_is_wrong_or_late_is_refused(platforms: PushServer, kind: str, code: int) -> None:
    assert str(code) in str(refusal(one(platforms.channel(kind).replace("#SEC", "#OTHER"))))
    assert str(code) in str(refusal(one(platforms.channel(kind)), now=NOW - timedelta(hours=2)))
    assert not platforms.taken


@pytest.mark.parametrize(
    ("kind", "code", "wait"),
    [
        ("wecom", 45009, 60),
        ("dingtalk", 130101, 60),
        ("feishu", 9499, 60),
        ("telegram", 429, 7),
        ("ntfy", 429, 9),
        ("bark", 429, 60),
    ],
)
def test_too_many_is_a_refusal_that_says_how_long_to_wait(
    platforms: PushServer, kind: str, code: int, wait: float
) -> None:
    platforms.faults[kind].append("throttled")
    error = refusal(one(platforms.channel(kind)))
    assert str(code) in str(error)
    assert (error.reached, error.uncertain, error.retry_after) == (True, False, wait)


@pytest.mark.parametrize("kind", ["wecom", "dingtalk", "telegram"])
def test_the_twenty_first_message_of_a_minute_is_too_many(platforms: PushServer, kind: str) -> None:
    channel = one(platforms.channel(kind))
    assert channel.per_minute == A_MINUTE[kind] == 20
    for _ in range(20):
        send(channel)
    assert refusal(channel).retry_after


FAULTS = {
    # fault: (what is said, whether there was an answer, whether the message may have arrived)
    "error": ("HTTP 500", True, True),
    "page": ("不是 JSON", True, False),
    "redirect": ("HTTP 307", True, False),
}


@pytest.mark.parametrize(
    ("kind", "fault"),
    # Any success is one to an address of one's own.
    [(kind, fault) for kind in ROBOTS for fault in FAULTS if (kind, fault) != ("webhook", "page")],
)
def test_what_is_no_answer_is_no_success(platforms: PushServer, kind: str, fault: str) -> None:
    said, reached, uncertain = FAULTS[fault]
    platforms.faults[kind].append(fault)
    error = refusal(one(platforms.channel(kind)))
    assert said in str(error)
    assert (error.reached, error.uncertain) == (reached, uncertain)


@pytest.mark.parametrize("kind", ["wecom", "ntfy"])
def test_who_takes_a_message_and_never_answers_leaves_it_uncertain(platforms: PushServer, kind: str) -> None:
    platforms.faults[kind].append("silent")
    error = refusal(one(platforms.channel(kind), seconds=1.0))
    assert (error.reached, error.uncertain) == (False, True)
    assert len(platforms.taken) == 1


def test_a_closed_port_is_certain() -> None:
    error = refusal(one(f"wecom+http://127.0.0.1:1/send?key={KEY}"))
    assert (error.reached, error.uncertain) == (False, False)


def test_what_a_platform_says_is_kept_without_the_key(platforms: PushServer) -> None:
    assert json.loads(send(one(platforms.channel("wecom")))[0]) == {"errcode": 0, "errmsg": "ok"}
    [said] = send(one(platforms.channel("ntfy")))
    assert '"topic": "***"' in said


# --- e-mail -----------------------------------------------------------------------------------------------------------


def test_a_mail_arrives_as_it_was_meant(mail: SmtpServer) -> None:
    assert send(one(mail.channel(to="a@example.com,b@example.com"))) == ["SMTP 250"]
    [taken] = mail.taken
    assert (taken.sender, taken.recipients) == (USER, ("a@example.com", "b@example.com"))
    assert taken.content["Subject"] == REPORT.title
    assert taken.content["Message-ID"] == f"<{REPORT.key}.email@example.com>"
    assert taken.content.get_content().replace("\r\n", "\n") == f"{REPORT.text}\n\n{URL}\n"


def test_recipients_that_are_refused_are_counted_unless_it_is_all_of_them(mail: SmtpServer) -> None:
    assert send(one(mail.channel(to="a@example.com,nobody@example.com"))) == ["SMTP 250，1 个收件人被拒"]
    error = refusal(one(mail.channel(to="nobody@example.com")))
    assert "550" in str(error)
    assert not error.uncertain
    assert len(mail.taken) == 1


def test_a_title_cannot_add_heads_to_a_mail(mail: SmtpServer) -> None:
    send(one(mail.channel()), Message("a\r\nBcc: x@example.com", "t", "report", "c", NOW))
    assert mail.taken[0].content["Subject"] == "a Bcc: x@example.com"
    assert mail.taken[0].content["Bcc"] is None


@pytest.mark.parametrize(
    ("fault", "said", "reached", "uncertain", "taken"),
    [
        ("full", "SMTP 552", True, False, 0),
        ("busy", "421", True, False, 0),
        ("silent", "没有确认", False, True, 1),
    ],
)
def test_a_mail_server_that_does_not_take_it(
    mail: SmtpServer, fault: str, said: str, reached: bool, uncertain: bool, taken: int
) -> None:
    mail.fault = fault
    error = refusal(one(mail.channel()))
    assert said in str(error)
    assert (error.reached, error.uncertain, len(mail.taken)) == (reached, uncertain, taken)


def test_a_wrong_password_is_certain(mail: SmtpServer) -> None:
    error = refusal(one(mail.channel(password="another-password")))
    assert "535" in str(error)
    assert (error.reached, error.uncertain) == (True, False)
    assert not refusal(one(f"email+smtp://127.0.0.1:1?from={USER}&to={USER}")).uncertain


# --- the setting ------------------------------------------------------------------------------------------------------


def test_any_number_of_channels_and_several_of_a_kind(platforms: PushServer, mail: SmtpServer) -> None:
    setting = f"{platforms.channels()}\n{platforms.channel('wecom', 'boss')} {mail.channel()}"
    channels = read_channels(setting)
    assert list(channels) == [*ROBOTS, "boss", "email"]
    assert [channel.kind for channel in channels.values()] == [*ROBOTS, "wecom", "email"]
    for channel in channels.values():
        send(channel)
    assert len(platforms.taken) + len(mail.taken) == 10


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("https://example.com/hook/SECRET", "channel 1 is not NAME=KIND"),
        ("pager+https://example.com/SECRET", "channel 1 is not NAME=KIND"),
        ("wecom+https://a/SECRET wecom+https://b/SECRET", "channel 2 (wecom, wecom): another channel"),
        ("wecom+ftp://example.com/SECRET", "neither http"),
        ("wecom+https://example.com:port/SECRET", "cannot be read"),
        ("telegram+https://api.telegram.org/botSECRET", "chat_id"),
        ("ntfy+https://ntfy.sh/", "topic"),
        ("bark+https://api.day.app", "key"),
        ("email+smtp://u:SECRET@example.com?to=a@example.com", "from=ADDRESS"),
        ("email+https://u:SECRET@example.com?from=a@b.c&to=a@b.c", "neither smtp"),
        (f"{'n' * 17}=wecom+https://example.com/SECRET", "longer than 16"),
    ],
)
def test_a_wrong_channel_is_refused_without_telling_it(setting: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        read_channels(setting)
    assert "SECRET" not in str(caught.value)


def test_no_repr_and_no_log_holds_a_secret(
    platforms: PushServer, mail: SmtpServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    channels = read_channels(f"{platforms.channels()}\n{mail.channel()}")
    for channel in channels.values():
        send(channel)
    for secret in (KEY, SECRET, PASSWORD):
        assert secret not in repr(channels) + caplog.text


def test_mail_to_another_machine_is_never_in_the_clear() -> None:
    channels = read_channels(
        "a=email+smtp://h.example?from=a@b.c&to=a@b.c b=email+smtps://h.example?from=a@b.c&to=a@b.c"
    )
    assert [channel.server.security for channel in channels.values()] == ["starttls", "tls"]  # type: ignore[attr-defined]
    assert [channel.server.port for channel in channels.values()] == [587, 465]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("said", "wait"), [(None, None), (30, 30), (-1, 0), (1e12, 86_400), (float("nan"), None), (float("inf"), None)]
)
def test_a_wait_that_no_clock_knows_is_none(said: float | None, wait: float | None) -> None:
    assert DeliveryError("x", reached=True, retry_after=said).retry_after == wait

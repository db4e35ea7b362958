"""The outbox and its sender: every message once, each channel by itself, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import make_url

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.messages.robots import RobotChannel
from douban_pipeline.core.messages.types import Part
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.digest.guards import status, unsettled
from douban_pipeline.digest.push import outbox
from douban_pipeline.digest.push.rules import MOST_ATTEMPTS, PushType
from douban_pipeline.digest.push.sender import Sender
from douban_pipeline.digest.services import open_services
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline_tests.conftest import CORE_ENGINES
from douban_pipeline_tests.digest.push.office import DAY, TEN_PM, Office, office
from douban_pipeline_tests.stand_ins.push_server import PushServer
from douban_pipeline_tests.stand_ins.smtp_server import SmtpServer

SERVERS = [engine for engine in CORE_ENGINES if engine != "sqlite"]


@pytest.fixture
def platforms() -> Iterator[PushServer]:
    with PushServer(now=TEN_PM.timestamp) as server:
        yield server


@pytest.fixture
def wecom(platforms: PushServer, tmp_path: Path) -> Iterator[Office]:
    with office(tmp_path, platforms.channel("wecom")) as place:
        yield place


def test_the_report_arrives_once_on_every_channel(any_database_url: str, platforms: PushServer, tmp_path: Path) -> None:
    with SmtpServer() as mail, office(tmp_path, f"{platforms.channels()} {mail.channel()}", any_database_url) as place:
        assert place.enqueue() == 9
        assert place.enqueue() == 0
        assert place.push().counts() == {"sent": 9, "failed": 0, "unknown": 0, "dead": 0, "held": 0, "lost": 0}
        assert place.enqueue() == 0
        assert not place.push().sent
        assert set(place.states().values()) == {"sent"}
        with place.services.engine.connect() as connection:
            found = status(connection, DAY, "22:00", channels=place.services.settings.channels)
    assert found.delivered
    assert found.sent_at == TEN_PM
    assert Counter(taken.kind for taken in platforms.taken) == Counter(
        set(place.services.settings.channels) - {"email"}
    )
    assert len(mail.taken) == 1


def test_one_channel_that_fails_or_hangs_keeps_no_other_waiting(platforms: PushServer, tmp_path: Path) -> None:
    channels = f"{platforms.channel('wecom')} {platforms.channel('dingtalk')} {platforms.channel('wecom', 'second')}"
    with office(tmp_path, channels) as place:
        platforms.faults["dingtalk"].append("throttled")
        place.enqueue()
        report = place.push()
        assert [row.channel for row in report.failed] == ["dingtalk"]
        assert place.states() == {"wecom": "sent", "dingtalk": "failed", "second": "sent"}
        [failed] = place.rows(states=["failed"])
        assert "130101" in failed.error
        assert failed.next_attempt_at == TEN_PM + timedelta(seconds=60)
        place.clock.advance(seconds=59)
        assert not place.push().sent
        place.clock.advance(seconds=1)
        assert [row.channel for row in place.push().sent] == ["dingtalk"]
        assert Counter(taken.kind for taken in platforms.taken) == {"wecom": 2, "dingtalk": 1}


@pytest.mark.parametrize(("push_type", "arrived", "state"), [("report", 2, "sent"), ("finding", 1, "unknown")])
def test_a_platform_that_takes_it_and_never_says_so(
    platforms: PushServer, tmp_path: Path, push_type: str, arrived: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("douban_pipeline.digest.services.PUSH_TIMEOUT_SECONDS", 2.0)
    with office(tmp_path, platforms.channel("wecom")) as place:
        platforms.faults["wecom"].append("silent")
        place.enqueue(push_type, slot="07:00")
        place.push()
        place.clock.advance(minutes=10)
        place.push()
        assert place.states() == {"wecom": state}
        assert len(platforms.taken) == arrived
        with place.services.engine.connect() as connection:
            told = unsettled(connection, DAY)
    assert [row.slot for row in told] == (["07:00"] if state == "unknown" else [])


@pytest.mark.parametrize(
    ("kind", "fault", "state"),
    [
        ("webhook", "error", "sent"),
        ("webhook", "silent", "sent"),
        ("bark", "silent", "sent"),
        ("ntfy", "error", "sent"),
        ("wecom", "error", "unknown"),
        ("dingtalk", "silent", "unknown"),
        ("telegram", "error", "unknown"),
    ],
)
def test_a_finding_that_may_have_arrived_is_sent_again_where_its_key_makes_it_one(
    platforms: PushServer, tmp_path: Path, kind: str, fault: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("douban_pipeline.digest.services.PUSH_TIMEOUT_SECONDS", 2.0)
    keys = []
    real = RobotChannel.send

    def send(channel: RobotChannel, part: Part, *, now: datetime) -> str:
        keys.append(part.key)
        return real(channel, part, now=now)

    monkeypatch.setattr(RobotChannel, "send", send)
    with office(tmp_path, platforms.channel(kind)) as place:
        platforms.faults[kind].append(fault)
        place.enqueue("finding", slot="07:00")
        place.push()
        place.clock.advance(minutes=10)
        place.push()
        assert place.states() == {kind: state}
    assert len(keys) == (2 if state == "sent" else 1)
    assert len(set(keys)) == 1
    assert keys[0]


def test_a_finding_whose_sender_died_is_sent_again_where_its_key_makes_it_one(
    platforms: PushServer, tmp_path: Path
) -> None:
    with office(tmp_path, f"{platforms.channel('webhook')} {platforms.channel('wecom')}") as place:
        place.enqueue("finding")
        rows = place.rows()
        with place.services.engine.begin() as connection:
            for row in rows:
                outbox.claim(connection, row.id, "run", place.clock.now())
        place.clock.advance(minutes=4)
        place.push()
        assert place.states() == {"webhook": "sent", "wecom": "unknown"}


def test_a_finding_is_refused_at_most_eight_times_and_the_report_for_two_days(
    platforms: PushServer, wecom: Office
) -> None:
    platforms.faults["wecom"].extend(["page"] * 200)
    wecom.enqueue("finding", slot="18:00")
    wecom.enqueue("report")
    for _ in range(12):
        wecom.push()
        wecom.clock.advance(minutes=31)
    finding, report = wecom.rows()
    assert (finding.state, finding.attempts, finding.next_attempt_at) == ("dead", 8, None)
    assert (report.state, report.attempts) == ("failed", 12)
    assert "放弃" in finding.error


def test_a_report_whose_sender_dies_each_time_is_given_up(wecom: Office) -> None:
    wecom.enqueue("report")
    [row] = wecom.rows()
    for _ in range(MOST_ATTEMPTS[PushType.REPORT] - 1):
        with wecom.services.engine.begin() as connection:
            assert outbox.claim(connection, row.id, "run", wecom.clock.now()) is not None
            wecom.clock.advance(minutes=4)
            [row] = outbox.release_abandoned(connection, wecom.clock.now())
            assert row.state == "failed"
    with wecom.services.engine.begin() as connection:
        outbox.claim(connection, row.id, "run", wecom.clock.now())
    wecom.clock.advance(minutes=4)
    report = wecom.push()
    assert [(row.state, row.attempts) for row in report.dead] == [("dead", MOST_ATTEMPTS[PushType.REPORT])]
    assert not report.sent
    assert "放弃" in report.dead[0].error


def test_a_rerun_with_another_winner_is_no_second_push(platforms: PushServer, wecom: Office) -> None:
    assert wecom.enqueue("finding", slot="18:00", target_url="https://example.com/analysis/1", title="一") == 1
    # Nobody has tried yet: it says what was found last.
    assert wecom.enqueue("finding", slot="18:00", target_url="https://example.com/analysis/2", title="二") == 0
    wecom.push()
    assert wecom.enqueue("finding", slot="18:00", target_url="https://example.com/analysis/3", title="三") == 0
    wecom.push()
    assert [(taken.title, taken.url) for taken in platforms.taken] == [("二", "https://example.com/analysis/2")]


def test_a_message_goes_with_the_transaction_that_writes_it(wecom: Office) -> None:
    fields = {"report_date": DAY, "slot": "07:00", "push_type": "finding", "target_url": "u", "title": "t", "body": ""}
    with wecom.services.engine.connect() as connection:
        assert outbox.enqueue(connection, channels=["wecom"], now=TEN_PM, **fields) == 1
        connection.rollback()
    assert not wecom.rows()


def test_quiet_hours_hold_a_finding_until_they_end(platforms: PushServer, tmp_path: Path) -> None:
    with office(tmp_path, platforms.channel("wecom"), quiet_hours="21:00-07:00") as place:
        place.enqueue("finding", slot="22:00", title="机会")
        place.enqueue("report", title="日报")
        assert place.push().counts()["held"] == 1
        assert [taken.title for taken in platforms.taken] == ["日报"]
        place.clock.advance(hours=9)
        assert not place.push().held
    assert [taken.title for taken in platforms.taken] == ["日报", "机会"]


def test_no_more_goes_to_a_platform_in_a_minute_than_it_takes(platforms: PushServer, wecom: Office) -> None:
    for day in range(25):
        wecom.enqueue(report_date=DAY + timedelta(days=day))
    counts = wecom.push().counts()
    assert (counts["sent"], counts["held"]) == (20, 5)
    wecom.clock.advance(seconds=61)
    platforms.now = lambda: TEN_PM.timestamp() + 61
    assert wecom.push().counts()["sent"] == 5
    assert not platforms.refused


def test_parts_of_one_message_are_sent_apart(platforms: PushServer, wecom: Office) -> None:
    wecom.enqueue(body="字" * 3500)
    wecom.push()
    assert [taken.title[-5:] for taken in platforms.taken] == ["(1/3)", "(2/3)", "(3/3)"]
    assert wecom.clock.sleeps == [3.0, 3.0]


def test_a_message_refused_in_the_middle_goes_on_there(platforms: PushServer, wecom: Office) -> None:
    wecom.enqueue(body="字" * 3500)
    platforms.faults["wecom"].extend(["well", "throttled"])
    wecom.push()
    wecom.clock.advance(minutes=2)
    wecom.push()
    assert [taken.title[-5:] for taken in platforms.taken] == ["(1/3)", "(2/3)", "(3/3)"]


def test_an_error_of_a_channel_s_own_is_a_failed_delivery_and_is_not_quoted(
    platforms: PushServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with office(tmp_path, f"{platforms.channel('wecom')} {platforms.channel('dingtalk')}") as place:
        real = RobotChannel.send

        def send(self: RobotChannel, part: Part, *, now: datetime) -> str:
            return real(self, part, now=now) if self.kind == "wecom" else str("密码".encode("ascii"))

        monkeypatch.setattr(RobotChannel, "send", send)
        place.enqueue()
        place.enqueue("finding")
        assert place.push().counts()["sent"] == 2
        told = {row.push_type.value: (row.state.value, row.error) for row in place.rows(channels=["dingtalk"])}
        assert [state for state, _ in told.values()] == ["failed", "unknown"]
        assert all("UnicodeEncodeError" in error and "密码" not in error for _, error in told.values())


def test_a_channel_that_is_no_longer_configured_is_told(platforms: PushServer, wecom: Office) -> None:
    wecom.enqueue(channels=["gone"])
    assert [row.channel for row in wecom.push().failed] == ["gone"]
    [row] = wecom.rows()
    assert "DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS" in row.error


def test_a_preview_sends_and_changes_nothing(platforms: PushServer, wecom: Office) -> None:
    wecom.enqueue()
    before = wecom.rows()
    assert len(Sender(wecom.services).preview().sent) == 1
    assert wecom.rows() == before
    assert not platforms.taken


def test_what_a_person_requeues_is_sent_again(platforms: PushServer, wecom: Office) -> None:
    wecom.enqueue()
    wecom.push()
    [row] = wecom.rows()
    with wecom.services.engine.begin() as connection:
        assert outbox.requeue(connection, [row.id, 999], TEN_PM) == [row.id]
    wecom.push()
    assert len(platforms.taken) == 2


def test_a_lease_that_ended_is_taken_over_and_the_late_sender_changes_nothing(
    platforms: PushServer, wecom: Office
) -> None:
    wecom.enqueue()
    with wecom.services.engine.begin() as connection:
        held = outbox.claim(connection, 1, "slow", TEN_PM)
    assert held is not None
    assert not wecom.push().sent
    wecom.clock.advance(minutes=4)
    assert len(wecom.push().sent) == 1
    with wecom.services.engine.begin() as connection:
        outcome = outbox.PushOutcome(outbox.PushState.DEAD, None, "late")
        assert not outbox.finish(connection, held, outcome, wecom.clock.now())
        assert not outbox.renew(connection, held, 1, 1, "", wecom.clock.now())
    assert wecom.states() == {"wecom": "sent"}
    assert len(platforms.taken) == 1


@pytest.mark.parametrize("engine", SERVERS)
def test_two_senders_at_once_send_nothing_twice(
    engine: str, request: pytest.FixtureRequest, platforms: PushServer, tmp_path: Path
) -> None:
    url = request.getfixturevalue(f"{engine}_url")
    names = [f"c{number}" for number in range(6)]
    channels = " ".join(platforms.channel("ntfy", name) for name in names)
    with office(tmp_path, channels, url) as place:
        for day in range(6):
            place.enqueue(report_date=DAY + timedelta(days=day), title=f"日报 {day}", channels=names)
        others = [open_services(place.services.settings, place.clock) for _ in range(3)]
        start = threading.Barrier(len(others))

        def push(index: int) -> int:
            start.wait(30)
            return len(Sender(others[index]).run().sent)

        with ThreadPoolExecutor(len(others)) as pool:
            sent = sum(pool.map(push, range(len(others))))
        for each in others:
            each.close()
        assert set(place.states().values()) == {"sent"}
    assert sent == 36
    assert Counter(taken.title for taken in platforms.taken) == {f"日报 {day}": 6 for day in range(6)}


class Wire:
    """A line to a database that can be cut: everything on it ends, and nothing new gets through until it is mended."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._open: list[socket.socket] = []
        self._whole = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole = False
        for each in self._open:
            hang_up(each)

    def mend(self) -> None:
        self._open.clear()
        self._whole = True

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._whole:
                near.close()
                continue
            far = socket.create_connection(self._target)
            self._open += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=pump, args=(source, sink), daemon=True).start()


def hang_up(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError), source:
        while data := source.recv(65536):
            sink.sendall(data)
    hang_up(sink)


@pytest.mark.parametrize("engine", SERVERS)
def test_the_database_restarts_while_the_report_is_sent(
    engine: str, request: pytest.FixtureRequest, platforms: PushServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(request.getfixturevalue(f"{engine}_url"))
    wire = Wire(url.host or "127.0.0.1", url.port or 0)
    through = url.set(host="127.0.0.1", port=wire.port).render_as_string(hide_password=False)
    send = RobotChannel.send

    def sending(channel: RobotChannel, part, **fields) -> str:
        said = send(channel, part, **fields)
        wire.cut()
        threading.Timer(0.4, wire.mend).start()
        return said

    with office(tmp_path, platforms.channel("wecom"), through, clock=SystemClock()) as place:
        place.enqueue(now=SystemClock().now())
        monkeypatch.setattr(RobotChannel, "send", sending)
        assert len(place.push().sent) == 1
        assert place.states() == {"wecom": "sent"}
        assert not place.push().sent
    assert len(platforms.taken) == 1
    wire.close()


def test_a_wrong_channel_in_the_environment_is_refused_without_telling_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS", "wecom+https://a/KEY-0123 wecom+https://b/KEY-4567")
    monkeypatch.setenv("DOUBAN_PIPELINE_DIGEST_QUIET_HOURS", "nights")
    with pytest.raises(SettingsError) as caught:
        DigestSettings.load(_env_file=None)
    text = str(caught.value)
    assert "DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS" in text
    assert "another channel has this name" in text
    assert "DOUBAN_PIPELINE_DIGEST_QUIET_HOURS" in text
    assert "KEY-" not in text

"""One transaction for the requests of a moment; each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from douban_pipeline.comments.api.request_batches import Gathering
from douban_pipeline_tests.comments.serving import served


class Taking:
    """Work that waits until it is let on, and doubles numbers; 13 is refused, a batch with 0 fails."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []
        self.let_on = asyncio.Event()

    async def __call__(self, items: Sequence[int]) -> Sequence[int | Exception]:
        self.taken.append(list(items))
        await self.let_on.wait()
        if 0 in items:
            raise LookupError("nothing")
        return [ValueError("13") if item == 13 else 2 * item for item in items]


def run(*waves: Sequence[int], most: int = 200, leaves: int | None = None) -> tuple[list[list[int]], list[Any]]:
    """Ask wave after wave while the first is under way; return the batches, and what each caller got."""

    async def main() -> tuple[list[list[int]], list[Any]]:
        work = Taking()
        gathering: Gathering[int, int] = Gathering(work, most=most)
        callers: list[asyncio.Task[int]] = []
        for wave in waves:
            callers += [asyncio.ensure_future(gathering.run(item)) for item in wave]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        if leaves is not None:
            callers[leaves].cancel()
        work.let_on.set()
        return work.taken, await asyncio.gather(*callers, return_exceptions=True)

    return asyncio.run(main())


def test_who_comes_while_work_is_under_way_goes_with_the_next():
    taken, got = run([1, 2], [3], [4, 5])
    assert taken == [[1, 2], [3, 4, 5]]
    assert got == [2, 4, 6, 8, 10]


def test_a_batch_takes_only_so_many():
    taken, got = run([1], list(range(2, 9)), most=3)
    assert taken == [[1], [2, 3, 4], [5, 6, 7], [8]]
    assert got == [2 * number for number in range(1, 9)]


def test_one_that_is_refused_takes_no_other_with_it_and_a_failure_is_everybodys():
    _, got = run([1], [13, 2])
    assert [got[0], got[2]] == [2, 4]
    assert isinstance(got[1], ValueError)
    taken, got = run([0, 1], [2])
    assert taken == [[0, 1], [2]]
    assert [type(each) for each in got] == [LookupError, LookupError, int]


def test_a_caller_that_goes_away_does_not_take_the_work_from_others():
    _, got = run([1, 2], [3], leaves=0)
    assert isinstance(got[0], asyncio.CancelledError)
    assert got[1:] == [4, 6]


@pytest.mark.parametrize("refused", [False, True])
def test_requests_of_a_moment_are_written_in_few_transactions(tmp_path, refused):
    """While a transaction is held up, more come; among them one about a comment that does not exist."""
    with served(tmp_path) as place:
        film = place.section()
        commits: list[int] = []

        def committed(connection: object) -> None:
            commits.append(1)

        place.publish(2, film, "先到")
        event.listen(place.services.engine, "commit", committed)

        async def ask(client: httpx.AsyncClient, number: int) -> httpx.Response:
            headers = {"Authorization": f"Bearer {place.token(number + 2)}"}
            if refused and number == 7:
                return await client.put("/comments/v1/comments/5/vote", json={"value": 1}, headers=headers)
            path = f"/comments/v1/sections/1/{film}/comments"
            return await client.post(path, json={"content": f"第 {number} 条"}, headers=headers)

        async def main() -> list[int]:
            async with httpx.AsyncClient(base_url=place.base, timeout=60, trust_env=False) as client:
                return [each.status_code for each in await asyncio.gather(*(ask(client, n) for n in range(40)))]

        statuses = asyncio.run(main())
        event.remove(place.services.engine, "commit", committed)
        assert statuses == [404 if refused and number == 7 else 202 for number in range(40)]
        assert len(commits) <= 40
        place.work()
        page = place.page(film, sort="floor", size=50)
        assert [item["floor"] for item in page["items"]] == list(range(1, 41 if refused else 42))
        assert place.differences() == []

"""What the service depends on: an answer is waited for as long as is allowed, and what keeps failing is left alone."""

from __future__ import annotations

import asyncio

import pytest

from douban_pipeline.comments.dependencies import Dependencies, Dependency, UnavailableError


def test_time_in_which_the_process_takes_connections_does_not_make_an_answer_late():
    async def main() -> str:
        loop = asyncio.get_running_loop()
        clock, ahead = loop.time, [0.0]
        loop.time = lambda: clock() + ahead[0]  # type: ignore[method-assign]
        dependencies = Dependencies({"page": Dependency("page", True, 3.0, 10)})
        answer = loop.create_future()
        call = asyncio.ensure_future(dependencies.call("page", lambda: answer))
        for _ in range(3):
            await asyncio.sleep(0)
        ahead[0] = 20.0
        for _ in range(3):
            await asyncio.sleep(0)
        answer.set_result("page")
        return str(await call)

    assert asyncio.run(main()) == "page"


def test_calls_that_fail_at_the_same_time_all_count():
    async def main() -> list[str]:
        dependencies = Dependencies({"friends": Dependency("friends", False, 3.0, 10)})
        called: list[str] = []

        async def fails() -> None:
            called.append("friends")
            await asyncio.sleep(0)
            raise OSError

        degraded: list[str] = []
        await asyncio.gather(*(dependencies.try_call("friends", fails, degraded) for _ in range(5)))
        await dependencies.try_call("friends", fails, degraded)
        return called

    assert asyncio.run(main()) == ["friends"] * 5


def test_what_is_not_answered_in_time_is_given_up():
    async def main() -> None:
        dependencies = Dependencies({"page": Dependency("page", True, 0.01, 10)})
        await dependencies.call("page", lambda: asyncio.get_running_loop().create_future())

    with pytest.raises(UnavailableError):
        asyncio.run(main())

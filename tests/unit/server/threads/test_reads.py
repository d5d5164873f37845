"""Reads: callers take turns, none has more threads than remain free, and waits time out."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from forewarn.core.errors import Unavailable
from forewarn.durations import ReadCounts
from forewarn.server.threads import reads as threads_reads
from forewarn.server.threads.reads import Reads
from tests.helpers.programs.no_thread import no_thread

FOREVER = 3600.0


class Library:
    """Reads that end when the test releases them."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.begun: list[str] = []
        self._changed = threading.Condition()
        self._ended: set[str] = set()

    def read(self, caller: str | None, name: str, at_once: int = threads_reads.THREADS) -> Awaitable[str]:
        run: Callable[..., Awaitable[str]] = (
            self.reads.run_own if caller is None else self.reads.run_for(caller, at_once)
        )
        return asyncio.ensure_future(run(lambda: self._read(name)))

    def counts(self) -> ReadCounts:
        return self.reads.counts()

    def end(self, *names: str) -> None:
        with self._changed:
            self._ended.update(names)
            self._changed.notify_all()

    async def until_begun(self, *names: str) -> None:
        def begun() -> bool:
            return set(names) <= set(self.begun)

        def wait() -> None:
            with self._changed:
                assert self._changed.wait_for(begun, 60)

        await asyncio.to_thread(wait)

    def _read(self, name: str) -> str:
        with self._changed:
            self.begun.append(name)
            self._changed.notify_all()
            self._changed.wait_for(lambda: name in self._ended or "all" in self._ended)
        return name


@contextmanager
def library(**more: float) -> Iterator[Library]:
    reads = Reads(**{"longest_wait": FOREVER, **more})  # type: ignore[arg-type]
    opened = Library(reads)
    try:
        yield opened
    finally:
        opened.end("all")
        reads.stop()


def test_no_caller_has_more_threads_than_remain_free() -> None:
    async def ask(lib: Library) -> None:
        slow = [lib.read("a", f"a{number}") for number in range(6)]
        await lib.until_begun("a0", "a1")
        other = lib.read("b", "b0")
        await lib.until_begun("b0")
        third = lib.read("c", "c0")
        await lib.until_begun("c0")
        assert sorted(lib.begun) == ["a0", "a1", "b0", "c0"]
        lib.end("all")
        assert await asyncio.gather(*slow, other, third) == [
            *(f"a{number}" for number in range(6)),
            "b0",
            "c0",
        ]

    with library() as lib:
        asyncio.run(ask(lib))


def test_a_callers_limit_on_concurrent_reads_is_kept() -> None:
    async def ask(lib: Library) -> None:
        slow = [lib.read("a", f"a{number}", at_once=1) for number in range(3)]
        other = lib.read("b", "b0")
        await lib.until_begun("a0", "b0")
        assert sorted(lib.begun) == ["a0", "b0"]
        lib.end("a0")
        await lib.until_begun("a1")
        assert "a2" not in lib.begun
        lib.end("all")
        assert await asyncio.gather(*slow, other) == ["a0", "a1", "a2", "b0"]

    with library() as lib:
        asyncio.run(ask(lib))


def test_reads_continue_when_threads_can_be_started_again() -> None:
    async def ask(lib: Library) -> None:
        with no_thread():
            for number in range(threads_reads.THREADS + 2):
                with pytest.raises(Unavailable, match="can't start new thread"):
                    await lib.read(f"caller-{number}", "refused")
        assert lib.counts() == ReadCounts(running=0, waiting=0, refused=threads_reads.THREADS + 2)
        lib.end("all")
        assert await lib.read("a", "a0") == "a0"

    with library() as lib:
        asyncio.run(ask(lib))
        assert lib.begun == ["a0"]


def test_a_read_without_a_new_thread_waits_for_an_existing_one() -> None:
    async def ask(lib: Library) -> None:
        first = lib.read("a", "a0")
        await lib.until_begun("a0")
        with no_thread():
            second = lib.read("b", "b0")
            await asyncio.sleep(0)
            lib.end("all")
            assert await asyncio.gather(first, second) == ["a0", "b0"]

    with library() as lib:
        asyncio.run(ask(lib))


def test_callers_take_turns_whatever_the_length_of_their_queues() -> None:
    async def ask(lib: Library) -> None:
        first = lib.read("a", "a0")
        await lib.until_begun("a0")
        rest = [lib.read(*each) for each in (("a", "a1"), ("a", "a2"), ("b", "b0"), ("a", "a3"), ("c", "c0"))]
        await asyncio.sleep(0)
        lib.end("all")
        await asyncio.gather(first, *rest)
        assert lib.begun == ["a0", "a1", "b0", "c0", "a2", "a3"]

    with library(threads=1) as lib:
        asyncio.run(ask(lib))


def test_the_servers_own_reads_do_not_wait_for_callers() -> None:
    async def ask(lib: Library) -> None:
        slow = [lib.read(caller, caller) for caller in "abcdef"]
        await lib.until_begun("a", "b", "c", "d")
        lib.end("own")
        assert await lib.read(None, "own") == "own"
        assert len(lib.begun) == threads_reads.THREADS + 1
        lib.end("all")
        await asyncio.gather(*slow)

    with library() as lib:
        asyncio.run(ask(lib))


def test_a_read_that_cannot_begin_in_time_is_refused_and_never_runs() -> None:
    async def ask(lib: Library) -> None:
        slow = lib.read("a", "slow")
        await lib.until_begun("slow")
        with pytest.raises(Unavailable, match="too many reads are waiting"):
            await lib.read("a", "late")
        lib.end("all")
        assert await slow == "slow"  # a read that has begun is not timed out
        assert await lib.read("a", "next") == "next"
        assert "late" not in lib.begun
        assert lib.counts().refused == 1

    # Longer than a busy computer needs to begin the others.
    with library(threads=1, longest_wait=1.0) as lib:
        asyncio.run(ask(lib))


def test_reads_beyond_the_limit_of_the_queue_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_reads, "MOST_WAITING", 1)

    async def ask(lib: Library) -> None:
        slow = lib.read("a", "slow")
        await lib.until_begun("slow")
        waits = lib.read("a", "waits")
        with pytest.raises(Unavailable, match="too many reads are waiting"):
            await lib.read("b", "one too many")
        assert lib.counts() == ReadCounts(running=1, waiting=1, refused=1)
        lib.end("all")
        await asyncio.gather(slow, waits)

    with library(threads=1) as lib:
        asyncio.run(ask(lib))


def test_a_caller_that_disconnects_cancels_a_read_that_has_not_begun() -> None:
    async def ask(lib: Library) -> None:
        slow = lib.read("a", "slow")
        await lib.until_begun("slow")
        left = asyncio.ensure_future(lib.read("a", "left"))
        await asyncio.sleep(0)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        lib.end("all")
        await asyncio.gather(slow, lib.read("a", "next"))
        assert lib.begun == ["slow", "next"]

    with library(threads=1) as lib:
        asyncio.run(ask(lib))


def test_an_error_reaches_the_caller() -> None:
    def fail() -> None:
        raise Unavailable("the disk has failed")

    reads = Reads()
    with pytest.raises(Unavailable, match="the disk has failed"):
        asyncio.run(reads.run_for("a")(fail))
    reads.stop()


def test_no_thread_is_started_before_the_first_read() -> None:
    before = threads_that_read()
    reads = Reads()
    assert threads_that_read() <= before
    assert [asyncio.run(reads.run_for("a")(lambda: 7)) for _ in range(3)] == [7, 7, 7]
    assert len(threads_that_read() - before) == 1
    reads.stop()


def threads_that_read() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "forewarn-read"}


def test_a_long_read_does_not_delay_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_reads, "STOP_SECONDS", 0.01)

    async def ask(lib: Library) -> None:
        slow, waits = lib.read("a", "slow"), lib.read("a", "waits")
        await lib.until_begun("slow")
        lib.reads.stop()
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(Unavailable, match="stopping"):
            await lib.read("a", "later")
        lib.end("all")
        assert await slow == "slow"

    with library(threads=1) as lib:
        asyncio.run(ask(lib))

"""Work done ahead of its use, in order, with a fixed number of results in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["prefetched"]

Job = TypeVar("Job")
Result = TypeVar("Result")


def prefetched(
    jobs: Iterable[Job], work: Callable[[Job], Result], workers: int
) -> Iterator[tuple[Job, Result]]:
    """Each job with its result, in the order of the jobs.

    Parameters
    ----------
    jobs : iterable
        Taken one at a time, in the thread that asks for results.
    work : callable
        From a job to its result; called in threads, several at once.
    workers : int
        Threads. 0 does each job when it is asked for. At most ``workers + 1`` results that nobody has taken
        are in memory.

    Yields
    ------
    (job, result)
        An exception of ``work`` is raised here, at the job that it belongs to.
    """
    if workers == 0:
        for job in jobs:
            yield job, work(job)
        return
    pool = ThreadPoolExecutor(workers)
    waiting: deque[tuple[Job, Future[Result]]] = deque()
    try:
        for job in jobs:
            waiting.append((job, pool.submit(work, job)))
            if len(waiting) > workers:
                first, ahead = waiting.popleft()
                yield first, ahead.result()
                del ahead  # its result is the caller's alone
        while waiting:
            first, ahead = waiting.popleft()
            yield first, ahead.result()
            del ahead
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

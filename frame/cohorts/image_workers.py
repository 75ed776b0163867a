"""The processes that turn image files into rows of a shard.

A worker is a fresh Python that is told on its standard input what to do and answers on its standard output.
That pipe is also its life line: when the process at the other end is gone, killed or not, the pipe closes and
the worker ends at once, in the middle of an image. It keeps the lock of the store open until then, so that
no later run begins while somebody still writes.

Nothing of the caller's main module is imported again, so this works from a script, a notebook or a pipe.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final

import numpy as np

from frame.cohorts.pixels import UnreadableImage, decode_pixels, read_bytes, resize_and_crop
from frame.errors import InputError

__all__ = ["Chunk", "ImageRecord", "Workers", "file_state", "make_chunk", "serve"]

_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline() or sys.exit()); "
    "from frame.cohorts.image_workers import serve; serve()"
)
#: In place of the size and time of change of a file that could not be opened. No file has them, so that the
#: next run sees a change and tries again.
_UNOPENED: Final = (-1, -1)
_MISSING: Final = (-2, -2)
_UNNAMED: Final = (-3, -3)


@dataclass(frozen=True)
class Chunk:
    """Some neighbouring rows of one shard.

    Attributes
    ----------
    target : str
        File that the pixels are written into; it exists at its full size.
    offset : int
        Byte of the first row in it.
    root : str
        Folder that the files are relative to.
    files : tuple of (str or None)
        One POSIX path per row; ``None`` where none is named.
    size : int
        Side of the square in pixels.
    colour : str
        ``L`` or ``RGB``.
    """

    target: str
    offset: int
    root: str
    files: tuple[str | None, ...]
    size: int
    colour: str


@dataclass(frozen=True)
class ImageRecord:
    """What became of one image.

    Attributes
    ----------
    reason : str
        One of :data:`frame.cohorts.pixels.REASONS`; ``""`` for an image that is ready.
    sha256 : str
        Of the raw file; ``""`` where it could not be read.
    width, height : int
        Of the raw image as it is seen; 0 where it could not be decoded.
    n_bytes, changed : int
        Size in bytes and time of change in nanoseconds of the file that was read.
    """

    reason: str
    sha256: str
    width: int
    height: int
    n_bytes: int
    changed: int


def file_state(root: str, file: str | None) -> tuple[int, int]:
    """Size in bytes and time of change in nanoseconds of a file, which change with it.

    Parameters
    ----------
    root : str
        Folder that the file is relative to.
    file : str or None
        Its path; ``None`` where none is named.

    Returns
    -------
    (int, int)
        Negative numbers where no file is named or the file is missing.
    """
    if file is None:
        return _UNNAMED
    try:
        status = Path(root, file).stat()
    except (OSError, ValueError):
        return _MISSING
    return (status.st_size, status.st_mtime_ns)


def make_chunk(chunk: Chunk) -> list[ImageRecord]:
    """Read, resize and write the images of one chunk, one at a time.

    Parameters
    ----------
    chunk : Chunk
        What to make.

    Returns
    -------
    list of ImageRecord
        One per row. The pixels of an image that cannot be read are left at 0.

    Raises
    ------
    frame.InputError
        If the target cannot be written or a package is missing.
    """
    row_bytes = chunk.size**2 * (3 if chunk.colour == "RGB" else 1)
    records = []
    try:
        target = os.open(chunk.target, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            for row, file in enumerate(chunk.files):
                record, pixels = _make_image(chunk, file)
                if pixels is not None:
                    _write_at(target, pixels, chunk.offset + row * row_bytes)
                records.append(record)
        finally:
            os.close(target)
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        raise InputError(f"The images cannot be written ({reason}); make room and run again.") from None
    return records


def _write_at(target: int, pixels: np.ndarray, offset: int) -> None:
    left = memoryview(pixels.tobytes())
    while left:
        written = os.pwrite(target, left, offset)
        left, offset = left[written:], offset + written


def _make_image(chunk: Chunk, file: str | None) -> tuple[ImageRecord, np.ndarray | None]:
    if file is None:
        return ImageRecord("no file is named", "", 0, 0, *_UNNAMED), None
    try:
        content, status = read_bytes(Path(chunk.root, file))
    except UnreadableImage as problem:
        unopened = problem.reason == "the file cannot be opened"
        state = _UNOPENED if unopened else file_state(chunk.root, file)
        digest = hashlib.sha256(b"").hexdigest() if problem.reason == "the file is empty" else ""
        return ImageRecord(problem.reason, digest, 0, 0, *state), None
    state = (status.st_size, status.st_mtime_ns)
    digest = hashlib.sha256(content).hexdigest()
    try:
        pixels = decode_pixels(content, chunk.colour)
        prepared = resize_and_crop(pixels, chunk.size)
    except UnreadableImage as problem:
        if problem.reason == "the DICOM compression cannot be decoded here":
            state = _UNOPENED  # another package may decode it by the next run
        return ImageRecord(problem.reason, digest, 0, 0, *state), None
    height, width = pixels.shape[:2]
    return ImageRecord("", digest, width, height, *state), prepared


class Workers:
    """One worker process for each thread that asks for a chunk; to be used as a context.

    Parameters
    ----------
    lock : int
        Descriptor of the lock that they keep open.
    """

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._of_thread = threading.local()
        self._all: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._all:
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):  # what was not sent to an ended process is not needed
                    pipe.close()
        for process in self._all:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def make(self, chunk: Chunk) -> list[ImageRecord]:
        """Have one chunk made by the process of this thread, and wait for it.

        Parameters
        ----------
        chunk : Chunk
            What to make.

        Returns
        -------
        list of ImageRecord
            As of :func:`make_chunk`.

        Raises
        ------
        frame.InputError
            If the worker reports a mistake, or ended by itself, as one does that the system stops for want of
            memory.
        """
        process: subprocess.Popen[bytes] | None = getattr(self._of_thread, "process", None)
        if process is None:
            process = self._of_thread.process = self._started()
            self._all.append(process)
        answer = _asked(process, asdict(chunk))
        if answer is None:
            code = process.wait()
            how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            raise InputError(
                f"A process that prepares images ended before its work was done ({how}); run again, which "
                f"goes on where this run ended, with fewer workers if the memory was too small."
            )
        if "error" in answer:
            raise InputError(str(answer["error"]))
        return [ImageRecord(*fields) for fields in answer["records"]]

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._lock,),
        )
        _send(process, sys.path)
        return process


def _send(process: subprocess.Popen[bytes], message: object) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # the process has ended, and its silence tells so
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()


def _asked(process: subprocess.Popen[bytes], message: object) -> dict[str, Any] | None:
    """The answer of a worker; ``None`` where it has ended."""
    assert process.stdout is not None
    _send(process, message)
    line = process.stdout.readline()
    if not line.endswith(b"\n"):
        return None
    answer: dict[str, Any] = json.loads(line)
    return answer


def serve() -> None:
    """Be a worker: chunks come in as lines of JSON, answers go out; ends when the input does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one decides
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    tasks: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin.buffer:
            tasks.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        fields = json.loads(tasks.get())
        answer: dict[str, Any]
        try:
            records = make_chunk(Chunk(**{**fields, "files": tuple(fields["files"])}))
            answer = {"records": [list(asdict(record).values()) for record in records]}
        except InputError as problem:
            answer = {"error": str(problem)}
        except Exception as problem:  # its text may name a file
            answer = {"error": f"The images cannot be prepared: unexpected {type(problem).__name__}."}
        left = memoryview(json.dumps(answer).encode() + b"\n")
        try:
            while left:
                left = left[os.write(answers, left) :]
        except BrokenPipeError:
            os._exit(0)  # nobody waits for the answer any more

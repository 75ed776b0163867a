"""Half precision with a safety net: compared with float32 on samples, watched for overflow on all.

Networks keep their float32 weights; products are computed in the asked type by torch's automatic mixed
precision. Half (float16) has 11 significant bits and overflows at 65,504; bf16 has 8 bits and does not.

A row whose vector is not finite is computed again in float32. An overflow that a later step of the network
clips (a sigmoid, a ReLU6, a tanh) leaves a finite vector that is wrong, and only a comparison with float32
shows it: the first images of a store and of each block are compared, and a block whose sample is too far from
float32 is computed in float32 as a whole. What overflows like that in other images alone is not seen; a study
that cannot accept this takes bf16 or float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frame.encoders.loaders.checkpoints import library_module
from frame.errors import InputError

if TYPE_CHECKING:
    from frame.encoders.loaders import LoadedEncoder

__all__ = [
    "PRECISIONS",
    "Computed",
    "Precision",
    "begin_vectors",
    "check_precision",
    "exact_float32",
    "finish_vectors",
    "holds_float32",
    "on_processor",
    "resolve_precision",
    "settle_precision",
]

#: What can be asked for. ``auto`` is half on an accelerator, and float32 elsewhere.
PRECISIONS: Final = ("auto", "half", "bf16", "float32")
#: What is tried after what was asked for.
_NEXT: Final = {"half": ("half", "bf16"), "bf16": ("bf16",), "float32": ()}
#: Largest distance of a vector from its float32 value, relative to its length, that a sample may show:
#: several times what networks of the panel lose by rounding (0.001 in half, 0.01 in bf16).
_TOLERATED: Final = {"half": 0.02, "bf16": 0.08}


@dataclass(frozen=True)
class Precision:
    """What vectors are computed in.

    Attributes
    ----------
    asked, used : str
        ``half``, ``bf16`` or ``float32``.
    distance : float
        Largest distance of a vector of the first images from its float32 value, relative to its length; 0 for
        float32.
    reason : str
        Why ``used`` is not what was asked for; ``""`` where it is.
    """

    asked: str
    used: str
    distance: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Computed:
    """Vectors of a batch.

    Attributes
    ----------
    vectors : numpy.ndarray of float32, shape (n, width)
        On the host.
    n_again : int
        Rows that overflowed, and were computed again in float32.
    """

    vectors: np.ndarray
    n_again: int


def resolve_precision(loaded: LoadedEncoder, asked: str) -> str:
    """What is asked for on this device: ``half``, ``bf16`` or ``float32``.

    Raises
    ------
    frame.InputError
        If the text is unknown, or half is asked of an encoder that is no network.
    """
    check_precision(loaded.encoder.name, asked, is_network=loaded.is_network)
    if asked == "auto":
        return "half" if loaded.is_network and not on_processor(loaded) else "float32"
    return asked


def check_precision(name: str, asked: str, *, is_network: bool) -> None:
    """Check what is asked for before anything is loaded.

    Parameters
    ----------
    name : str
        Of the encoder, for error messages.
    asked : str
        One of :data:`PRECISIONS`.
    is_network : bool
        Whether the encoder is a network; others compute in float32 alone.

    Raises
    ------
    frame.InputError
        If the text is unknown, or half is asked of an encoder that is no network.
    """
    if asked not in PRECISIONS:
        raise InputError(f"precision is {asked!r}; it must be one of {', '.join(PRECISIONS)}.")
    if asked not in ("auto", "float32") and not is_network:
        raise InputError(f"precision is {asked!r}, and {name} computes on pixels in float32; give float32.")


def settle_precision(
    loaded: LoadedEncoder, asked: str, first: np.ndarray | None, at_once: int = 64
) -> Precision:
    """Compare the first images with float32, and step back where half does not hold.

    Parameters
    ----------
    loaded : LoadedEncoder
        The encoder.
    asked : {"half", "bf16", "float32"}
        Of :func:`resolve_precision`.
    first : numpy.ndarray of float32, shape (n, channels, size, size), or None
        Prepared images; None where no image can be read.
    at_once : int
        Images that go through the encoder together.

    Returns
    -------
    Precision
        The first of half, bf16 and float32, from what was asked on, in which every vector that is finite in
        float32 is finite and near it.
    """
    if first is None or asked == "float32":
        return Precision(asked, asked)
    exact = _vectors(loaded, first, "float32", at_once)
    reason = ""
    for precision in _NEXT[asked]:
        found = _vectors(loaded, first, precision, at_once)
        sound = np.isfinite(exact).all(axis=1)
        if not np.isfinite(found[sound]).all():
            reason = reason or f"{precision} overflows"
            continue
        distance = _distance(exact[sound], found[sound])
        if distance <= _TOLERATED[precision]:
            return Precision(asked, precision, distance, reason)
        reason = reason or f"{precision} is {distance:.2g} away from float32"
    return Precision(asked, "float32", 0.0, reason)


def holds_float32(
    loaded: LoadedEncoder, sample: np.ndarray, precision: str, at_once: int = 64
) -> tuple[bool, float]:
    """Compare a sample of a block with float32.

    Parameters
    ----------
    loaded : LoadedEncoder
        The encoder.
    sample : numpy.ndarray of float32, shape (n, channels, size, size)
        Prepared images.
    precision : {"half", "bf16"}
        What the block is going to be computed in.
    at_once : int
        Images that go through the encoder together.

    Returns
    -------
    tuple of bool and float
        Whether every vector is near its float32 value, and the largest distance, relative to its length.
        Vectors that are not finite do not count: :func:`finish_vectors` computes them again.
    """
    exact, found = (_vectors(loaded, sample, kind, at_once) for kind in ("float32", precision))
    sound = np.isfinite(exact).all(axis=1) & np.isfinite(found).all(axis=1)
    distance = _distance(exact[sound], found[sound])
    return distance <= _TOLERATED[precision], distance


def begin_vectors(loaded: LoadedEncoder, batch: Any, precision: str) -> Any:
    """Start the computation of a batch; :func:`finish_vectors` waits for it.

    An accelerator works on while the host goes on.
    """
    return _run(loaded, batch, precision)


def finish_vectors(loaded: LoadedEncoder, batch: Any, begun: Any, precision: str) -> Computed:
    """The vectors of a batch on the host; rows that overflowed are computed again in float32.

    Other rows of the batch keep what they have, so that a vector does not depend on its neighbours.
    """
    vectors = _on_host(begun)
    lost = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if precision == "float32" or not len(lost):
        return Computed(vectors, 0)
    again = _on_host(_run(loaded, batch[lost], "float32"))
    vectors = vectors.copy()
    vectors[lost] = again
    return Computed(vectors, int(np.isfinite(again).all(axis=1).sum()))


def on_processor(loaded: LoadedEncoder) -> bool:
    """Whether the encoder computes on the processor."""
    return not loaded.is_network or str(loaded.device).partition(":")[0] == "cpu"


@contextmanager
def exact_float32(loaded: LoadedEncoder) -> Iterator[None]:
    """While float32 means float32 on an accelerator too, and an algorithm is not chosen by timing."""
    if on_processor(loaded):
        yield
        return
    with library_module(loaded.encoder, "torch", "torch").backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    ):
        yield


def _run(loaded: LoadedEncoder, batch: Any, precision: str) -> Any:
    if not loaded.is_network:
        return loaded.vectors(batch)
    torch = library_module(loaded.encoder, "torch", "torch")
    kinds = {"half": torch.float16, "bf16": torch.bfloat16}
    device = str(loaded.device).partition(":")[0]
    try:
        with (
            torch.inference_mode(),
            torch.autocast(device, dtype=kinds.get(precision), enabled=precision in kinds),
        ):
            return loaded.vectors(batch)
    except torch.OutOfMemoryError:
        raise InputError(
            f"The device {loaded.device} has too little memory for {len(batch)} images at once through "
            f"{loaded.encoder.name}; give a smaller --batch."
        ) from None


def _vectors(loaded: LoadedEncoder, batch: np.ndarray, precision: str, at_once: int) -> np.ndarray:
    """Vectors on the host of any number of prepared images."""
    parts = range(0, len(batch), at_once)
    return np.concatenate([_on_host(_run(loaded, batch[at : at + at_once], precision)) for at in parts])


def _on_host(found: Any) -> np.ndarray:
    if isinstance(found, np.ndarray):
        return np.asarray(found, dtype=np.float32)
    vectors: np.ndarray = found.float().cpu().numpy()
    return vectors


def _distance(exact: np.ndarray, found: np.ndarray) -> float:
    lengths = np.linalg.norm(exact, axis=1)
    apart = np.linalg.norm(exact - found, axis=1)
    return float((apart / np.where(lengths > 0, lengths, 1.0)).max(initial=0.0))

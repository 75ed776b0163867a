"""Load an encoder of the panel: weights from a local folder, an installed package or the library's own place.

One module for each library; torch and the libraries are imported when an encoder is loaded. No code of a
checkpoint is run: neither remote code nor, unless it is asked for, a pickle.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from frame.encoders.panel import Encoder, encoder, side_problem, weights_folder
from frame.encoders.preprocessing import Preprocessing, preprocessing_of
from frame.errors import InputError

__all__ = ["LoadedEncoder", "Source", "load_encoder", "loader_module", "offline"]

#: Module of this package for each library.
_MODULES: Final = {
    "transformers": "transformers_models",
    "open_clip": "open_clip_models",
    "timm": "timm_models",
    "torchxrayvision": "xrayvision_models",
    "flair": "flair_models",
    "pixels": "pixel_models",
}
#: In the messages of failures of a device, which are no mistake of the user's.
_DEVICE_WORDS: Final = ("CUDA", "cuDNN", "CUDNN", "CUBLAS", "HIP error", "MPS")


@dataclass(frozen=True)
class Source:
    """Where the weights of an encoder come from.

    Attributes
    ----------
    folder : Path or None
        Local folder or file; None: the library's own place (its cache, or the hub).
    seed : int
        Seed of random weights.
    allow_pickle : bool
        Whether a checkpoint may run code when it is read.
    fit_on : numpy.ndarray or None
        For an encoder that is fitted to images: 8-bit pixels of training images.
    """

    folder: Path | None = None
    seed: int = 0
    allow_pickle: bool = False
    fit_on: np.ndarray | None = None


@dataclass(frozen=True)
class LoadedEncoder:
    """An encoder that is ready to compute vectors; made by :func:`load_encoder`.

    Attributes
    ----------
    encoder : Encoder
        Its row of the panel.
    preprocessing : Preprocessing
        What prepares its images.
    settings : dict
        What decides its vectors, for the sidecar of stored features: name, checkpoint, revision, library and
        its version, sha256 of the weights, sha256 of the preprocessing. ``origin`` says where the weights are
        from: ``local`` (a folder or file of the user's), ``hub``, ``cache`` (the library's own folder of
        downloads), ``package``, ``random``, ``pixels`` or ``loader`` (a function of the user's own without a
        folder). A local folder proves no revision, so ``revision`` is blank there: the sum of the weights
        says which they are.
    module : torch.nn.Module or callable
        Prepared batch to vectors. A network is in evaluation mode and on ``device``; of an encoder of kind
        ``pixels`` it is a function on numpy arrays.
    device : str
        Where the network is.
    """

    encoder: Encoder
    preprocessing: Preprocessing
    settings: Mapping[str, Any] = field(repr=False)
    module: Any = field(repr=False)
    device: str = "cpu"

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return self.encoder.width

    @property
    def is_network(self) -> bool:
        """Whether vectors come from a torch network, and not from numpy."""
        return self.encoder.kind != "pixels"

    def vectors(self, batch: Any) -> Any:
        """Vectors of a prepared batch.

        Parameters
        ----------
        batch : numpy.ndarray or torch.Tensor, shape (n, channels, size, size)
            As :meth:`Preprocessing.prepare` gives it; its range is checked.

        Returns
        -------
        torch.Tensor or, of an encoder of kind ``pixels``, numpy.ndarray; shape (n, width)
            In the precision of the network's weights, on its device.

        Raises
        ------
        frame.InputError
            If the values are not those that the encoder takes, images have a size that it does not take, or
            the network gives another width.
        """
        self.preprocessing.check_range(batch)
        if not self.is_network:
            found = self.module(np.asarray(batch))
        else:
            import torch

            for side in batch.shape[2:]:
                problem = side_problem(self.encoder, int(side))
                if problem:
                    raise InputError(f"{problem[0].upper()}{problem[1:]} (sizes.image of the profile).")
            if isinstance(batch, np.ndarray):
                batch = torch.from_numpy(np.ascontiguousarray(batch))
            weight = next(iter(self.module.parameters()), None)
            kind = torch.float32 if weight is None else weight.dtype
            with torch.inference_mode():
                batch = batch.to(device=self.device, dtype=kind, non_blocking=True)
                found = self._computed(torch, batch)
        if tuple(found.shape) != (len(batch), self.width):
            raise InputError(
                f"Encoder {self.encoder.name} gave vectors of shape {tuple(found.shape)} for {len(batch)} "
                f"images; its row declares a width of {self.width}. Mend the row or the weights."
            )
        return found

    def _computed(self, torch: Any, batch: Any) -> Any:
        try:
            found = self.module(batch)
        except (InputError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as problem:
            if isinstance(problem, RuntimeError) and any(word in str(problem) for word in _DEVICE_WORDS):
                raise  # the device failed, whatever the images are
            height, width = batch.shape[2:]
            raise InputError(
                f"Encoder {self.encoder.name} cannot compute vectors of images of {width} x {height} pixels "
                f"({type(problem).__name__}); give a size that its network takes, as input_size in its row "
                "or, where that is 0, as sizes.image in the profile."
            ) from problem
        if not isinstance(found, torch.Tensor):
            raise InputError(
                f"Encoder {self.encoder.name} gave {type(found).__name__} and no tensor of vectors; mend its "
                "network."
            )
        return found


def load_encoder(
    name: str,
    *,
    folder: Path | None = None,
    seed: int = 0,
    device: str = "cpu",
    allow_pickle: bool = False,
    mode: str = "shared",
    fit_on: np.ndarray | None = None,
) -> LoadedEncoder:
    """Load one encoder.

    Parameters
    ----------
    name : str
        A key of :func:`frame.encoders.panel.encoders`.
    folder : Path, optional
        Local folder or file of its weights. Without one: ``name`` in the folder that the environment
        variable ``FRAME_WEIGHTS`` names, then an installed package that holds them, then the library's own
        place, which may be a download.
    seed : int
        Seed of the weights of an untrained encoder.
    device : str
        Where the network is put, in torch's words.
    allow_pickle : bool
        Read a checkpoint that can run code while it is read. Say so only where you trust its origin.
    mode : {"shared", "native"}
        Preprocessing, see :mod:`frame.encoders.preprocessing`.
    fit_on : numpy.ndarray of uint8, shape (n, height, width) or (n, height, width, 3), optional
        Training images, for an encoder that is fitted to images (``image_pca``).

    Returns
    -------
    LoadedEncoder
        In evaluation mode.

    Raises
    ------
    frame.InputError
        If there is no such encoder, its library is not installed, the weights are not there, cannot be read
        without running code, or do not fit the row.
    """
    row = encoder(name)
    where = folder if folder is not None else weights_folder(name)
    if where is not None and not where.exists():
        raise InputError(
            f"The weights of {name} are not at '{where.name}'; name a folder or file that exists."
        )
    source = Source(where, seed, allow_pickle, fit_on)
    load = _own_function(row) if row.loader else _library(row).load
    module, about = load(row, source)
    preprocessing = preprocessing_of(row, mode)
    if row.kind != "pixels":
        from frame.encoders.loaders import checkpoints

        module = checkpoints.ready(row, module, device)
        about = {**checkpoints.described(row, module), **about}
    origin = about["origin"]
    settings = {
        "encoder": row.name,
        "checkpoint": row.checkpoint,
        "origin": origin,
        "revision": "" if origin in ("local", "loader") else row.revision,
        "architecture": row.architecture,
        "pooling": row.pooling,
        "width": row.width,
        "library": row.library,
        "preprocessing": preprocessing.declared,
        "preprocessing_sha256": preprocessing.sha256,
        **({"seed": seed} if row.kind == "untrained" else {}),
        **about,
    }
    return LoadedEncoder(row, preprocessing, settings, module, device)


def loader_module(row: Encoder) -> str:
    """Dotted name of the module of this package that loads an encoder; a function of one's own is outside."""
    return __name__ if row.loader else f"{__name__}.{_MODULES[row.library]}"


def _library(row: Encoder) -> Any:
    return importlib.import_module(loader_module(row))


def _own_function(row: Encoder) -> Callable[[Encoder, Source], tuple[Any, dict[str, Any]]]:
    """The user's own function: from a row and where the weights are to a torch module."""
    module_name, _, function_name = row.loader.partition(":")
    try:
        module = importlib.import_module(module_name)
        function = getattr(module, function_name)
    except MemoryError:
        raise
    except Exception as problem:
        if not isinstance(problem, (ImportError, AttributeError)):
            raise _failed(row, problem) from problem
        if isinstance(problem, ModuleNotFoundError) and not _is_part(problem.name, module_name):
            raise InputError(
                f"Encoder {row.name} is loaded by {row.loader}, whose module needs {problem.name}, which is "
                "not installed; install it, or mend the module."
            ) from None
        raise InputError(
            f"Encoder {row.name} is loaded by {row.loader}, which is not found; put its module where Python "
            "looks for modules (PYTHONPATH), or mend the column loader."
        ) from None

    def load(row: Encoder, source: Source) -> tuple[Any, dict[str, Any]]:
        file = getattr(module, "__file__", None)
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
        try:
            found = function(row, source)
        except (InputError, MemoryError):
            raise
        except Exception as problem:
            raise _failed(row, problem) from problem
        origin = "local" if source.folder is not None else "random" if row.kind == "untrained" else "loader"
        return found, {"origin": origin, "loader": row.loader, "loader_sha256": digest}

    return load


def _is_part(missing: str | None, module: str) -> bool:
    """Whether a module that is not found is the one that was asked for, or a package around it."""
    return missing is None or module == missing or module.startswith(f"{missing}.")


def _failed(row: Encoder, problem: Exception) -> InputError:
    return InputError(
        f"Encoder {row.name}: its loader {row.loader} failed ({type(problem).__name__}); mend its module, or "
        "the weights that it reads."
    )


def offline() -> bool:
    """Whether the user forbids downloads (``HF_HUB_OFFLINE``)."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")

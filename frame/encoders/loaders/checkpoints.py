"""Files of weights: found, fetched, and read without running code that they hold."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import pickle
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from frame.encoders.panel import LIBRARIES, WEIGHTS, Encoder
from frame.errors import InputError

if TYPE_CHECKING:
    import torch

__all__ = [
    "beside",
    "check_fit",
    "described",
    "fill",
    "hub_file",
    "library_module",
    "package_file",
    "read_weights",
    "ready",
    "seeded",
    "weights_file",
    "weights_sha256",
]

_ENDINGS: Final = (".safetensors", ".pth", ".pt", ".bin")
#: Keys under which a checkpoint of a training run keeps the weights.
_WRAPPERS: Final = ("model", "state_dict", "model_state_dict")


def library_module(row: Encoder, module: str, package: str) -> Any:
    """Import a library that an encoder needs.

    Raises
    ------
    frame.InputError
        If it is not installed.
    """
    try:
        # One of the libraries silences all warnings of the program when it is imported.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError:
        raise InputError(
            f"Encoder {row.name} needs {package}; install it with: pip install 'frame-audit[models]'."
        ) from None


def weights_file(row: Encoder, where: Path | None) -> Path:
    """The one file of weights that a local path names: the file itself, or the one in the folder.

    Raises
    ------
    frame.InputError
        If there is no local path, or the folder holds none, or several of which none is in the format that is
        preferred.
    """
    if where is None:
        raise InputError(
            f"The weights of {row.name} are not on this machine; put them into a folder or file called "
            f"{row.name} in the folder that the variable {WEIGHTS} names."
        )
    if where.is_file():
        return where
    for ending in _ENDINGS:
        found = sorted(path for path in where.glob(f"*{ending}") if not path.name.startswith("."))
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(
                f"The folder of the weights of {row.name} has {len(found)} files ending in {ending} "
                f"({', '.join(path.name for path in found[:4])}); name one of them."
            )
    raise InputError(
        f"The folder '{where.name}' holds no weights of {row.name}: no file ends in {', '.join(_ENDINGS)}."
    )


def beside(weights: Path, name: str) -> dict[str, Any]:
    """A JSON file beside a file of weights, or ``{}`` where there is none.

    Raises
    ------
    frame.InputError
        If it cannot be read.
    """
    path = weights.parent / name
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"The file '{name}' beside the weights cannot be read; fetch it again.") from None
    return found if isinstance(found, dict) else {}


def hub_file(row: Encoder, names: Iterable[str]) -> Path:
    """A file of an encoder's checkpoint in the cache of the hub, fetched if need be; the first that exists.

    Raises
    ------
    frame.InputError
        If none is there and none can be fetched.
    """
    hub = library_module(row, "huggingface_hub", "huggingface_hub")
    names = tuple(names)
    for name in names:
        try:
            return Path(hub.hf_hub_download(row.checkpoint, name, revision=row.revision or None))
        except hub.errors.EntryNotFoundError as problem:
            # Offline, a file that is not in the cache is "not found" too, whatever the repository holds.
            if isinstance(problem, hub.errors.LocalEntryNotFoundError):
                continue
        except (hub.errors.HfHubHTTPError, OSError, ValueError):
            break
    raise unreachable(row)


def unreachable(row: Encoder) -> InputError:
    """The error where the weights are neither here nor can be fetched."""
    terms = {
        "none": "",
        "agreement": " Its owner asks users to accept terms on the checkpoint's page first.",
        "request": " Its owner gives access on request, on the checkpoint's page.",
    }
    return InputError(
        f"The weights of {row.name} ({row.checkpoint}) are not on this machine and could not be fetched."
        f"{terms[row.gating]} Put them into a folder called {row.name} in the folder that FRAME_WEIGHTS "
        "names, or allow a download."
    )


def package_file(row: Encoder) -> Path:
    """The file of weights inside an installed package; the package is not imported.

    Raises
    ------
    frame.InputError
        If the package is not installed, or holds not exactly one such file.
    """
    try:
        files = importlib.metadata.files(row.package) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"The weights of {row.name} come in a package that is not installed; install it with: "
            f"pip install {row.package}."
        ) from None
    found = [Path(str(file.locate())) for file in files if Path(file.name).suffix in _ENDINGS]
    if len(found) != 1 or not found[0].is_file():
        raise InputError(
            f"The installed package {row.package} holds {len(found)} files of weights, where one is needed; "
            f"install it again: pip install --force-reinstall {row.package}."
        )
    return found[0]


def read_weights(
    row: Encoder, path: Path, *, allow_pickle: bool = False, classes: Iterable[Any] = ()
) -> dict[str, torch.Tensor]:
    """Read a file of weights.

    Parameters
    ----------
    row : Encoder
        For error messages.
    path : Path
        A ``.safetensors`` file, or what ``torch.save`` wrote.
    allow_pickle : bool
        Whether the file may run code while it is read.
    classes : iterable of type
        Further classes that may occur in the file; each is one of layers or plain containers, whose reading
        runs no code of the file.

    Returns
    -------
    dict of str to torch.Tensor
        Names as in the file, without a wrapper of a training run around them.

    Raises
    ------
    frame.InputError
        If the file cannot be read, or only by running code that it holds.
    """
    library = library_module(row, "torch", "torch")
    if path.suffix == ".safetensors":
        safetensors = library_module(row, "safetensors.torch", "safetensors")
        try:
            found: Any = safetensors.load_file(path, device="cpu")
        except Exception as problem:
            raise _unreadable(row, path, problem) from None
        return dict(found)
    try:
        with library.serialization.safe_globals(list(classes)):
            found = library.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as problem:
        # The reader of weights met a class or function that is not on its list.
        if not allow_pickle:
            raise InputError(
                f"The file '{path.name}' with the weights of {row.name} is a pickle that could run code when "
                "it is read. Use a file of tensors alone (.safetensors); or, if you trust where it comes "
                "from, say so: --allow-pickle, or allow_pickle=True."
            ) from problem
        found = _unpickled(library, row, path)
    except Exception as problem:
        raise _unreadable(row, path, problem) from None
    return _tensors(library, row, path, found)


def check_fit(
    row: Encoder,
    module: torch.nn.Module,
    weights: Mapping[str, torch.Tensor],
    *,
    may_have: Iterable[str] = (),
) -> None:
    """Check weights against a network: every one of its weights must be there, in its shape.

    Parameters
    ----------
    row : Encoder
        For error messages.
    module : torch.nn.Module
        The network; it may be without memory (on the device ``meta``).
    weights : mapping of str to torch.Tensor
        By name.
    may_have : iterable of str
        Beginnings of names that the file may have and that are not used.

    Raises
    ------
    frame.InputError
        If weights are missing, left over or of another shape.
    """
    spare = tuple(may_have)
    own = module.state_dict()
    missing = [name for name in own if name not in weights]
    surplus = [name for name in weights if name not in own and not name.startswith(spare)]
    shapes = [
        f"{name} is {tuple(weights[name].shape)} and should be {tuple(own[name].shape)}"
        for name in own
        if name in weights and weights[name].shape != own[name].shape
    ]
    if missing or surplus or shapes:
        said = [
            *([f"{len(missing)} are missing ({missing[0]}, ...)"] if missing else []),
            *([f"{len(surplus)} are not known ({surplus[0]}, ...)"] if surplus else []),
            *([f"{len(shapes)} have another shape ({shapes[0]})"] if shapes else []),
        ]
        raise InputError(
            f"The weights of {row.name} do not fit {row.architecture}: {'; '.join(said)}. Use the checkpoint "
            f"that its row names ({row.checkpoint or row.package or 'none'})."
        )


def fill(
    row: Encoder,
    module: torch.nn.Module,
    weights: Mapping[str, torch.Tensor],
    *,
    may_have: Iterable[str] = (),
) -> None:
    """Put weights into a network, once they are checked as by :func:`check_fit`."""
    check_fit(row, module, weights, may_have=may_have)
    own = module.state_dict()
    module.load_state_dict({name: weights[name] for name in own}, strict=True)


def seeded(row: Encoder, seed: int, build: Any) -> torch.nn.Module:
    """A network with random weights: the same for the same seed, and no other random number is disturbed."""
    library = library_module(row, "torch", "torch")
    with library.random.fork_rng(devices=[]):
        library.manual_seed(seed)
        module: torch.nn.Module = build()
    return module


def ready(row: Encoder, module: Any, device: str) -> torch.nn.Module:
    """A network for inference: evaluation mode, float32, no gradients, on a device.

    Raises
    ------
    frame.InputError
        If it is no network, has weights without a shape or memory, or there is no such device.
    """
    library = library_module(row, "torch", "torch")
    if not isinstance(module, library.nn.Module):
        raise InputError(
            f"The loader of {row.name} gave {type(module).__name__}; it must give a torch.nn.Module that "
            "turns a batch of images into vectors."
        )
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if library.nn.parameter.is_lazy(value) or value.is_meta:
            raise InputError(
                f"The loader of {row.name} gave a network whose weight {name[:60]} has no numbers yet; it "
                "must give one with all its weights (no Lazy layers, and nothing on the device meta)."
            )
    try:
        if library.device(device).type == "meta":
            raise RuntimeError("it holds no numbers")
        placed: torch.nn.Module = module.float().eval().requires_grad_(False).to(device)
    except (RuntimeError, AssertionError) as problem:
        first = (str(problem).splitlines() or ["unknown reason"])[0][:120]
        raise InputError(f"The encoder cannot be put on the device {device!r} ({first}).") from None
    return placed


def described(row: Encoder, module: torch.nn.Module) -> dict[str, Any]:
    """What of a loaded network goes into the sidecar: the digest of its weights, and versions."""
    packages = LIBRARIES[row.library]
    return {
        "weights_sha256": weights_sha256(module),
        "versions": {package: importlib.metadata.version(package) for package in packages},
    }


def weights_sha256(module: torch.nn.Module) -> str:
    """Digest of all weights of a network: names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        kept = value.detach().cpu().contiguous()
        digest.update(f"{name} {kept.dtype} {tuple(kept.shape)}\n".encode())
        digest.update(kept.reshape(-1).view(_bytes_type(kept)).numpy().data)
    return digest.hexdigest()


def _bytes_type(value: torch.Tensor) -> torch.dtype:
    import torch

    return torch.uint8 if value.numel() else value.dtype


def _unpickled(library: Any, row: Encoder, path: Path) -> Any:
    try:
        return library.load(path, map_location="cpu", weights_only=False)
    except Exception as problem:
        raise _unreadable(row, path, problem) from None


def _tensors(library: Any, row: Encoder, path: Path, found: Any) -> dict[str, Any]:
    if isinstance(found, library.nn.Module):
        return dict(_collected(found, ""))
    for key in _WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            break
    if not isinstance(found, Mapping) or not found:
        raise _unreadable(row, path, ValueError("it holds no weights"))
    tensors = {str(name): value for name, value in found.items() if isinstance(value, library.Tensor)}
    if not tensors:
        raise _unreadable(row, path, ValueError("it holds no weights"))
    if all(name.startswith("module.") for name in tensors):  # trained on several devices
        tensors = {name.removeprefix("module."): value for name, value in tensors.items()}
    return tensors


def _collected(module: Any, prefix: str) -> Iterable[tuple[str, Any]]:
    """Weights of a network that was read whole, by its tables alone: nothing of it is called."""
    for table in (module.__dict__["_parameters"], module.__dict__["_buffers"]):
        for name, value in table.items():
            if value is not None:
                yield f"{prefix}{name}", value.detach()
    for name, child in module.__dict__["_modules"].items():
        if child is not None:
            yield from _collected(child, f"{prefix}{name}.")


def _unreadable(row: Encoder, path: Path, problem: Exception) -> InputError:
    first = (str(problem).splitlines() or [""])[0][:120] or type(problem).__name__
    return InputError(
        f"The file '{path.name}' with the weights of {row.name} cannot be read ({first}); fetch it again."
    )

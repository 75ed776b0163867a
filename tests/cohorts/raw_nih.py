"""A small invented release of NIH ChestX-ray14: its table, its lists and its images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)
FINDINGS = ("No Finding", "Effusion", "Cardiomegaly|Effusion", "Mass", "Infiltration", "Pneumothorax|Edema")


def write_release(
    folder: Path, patients: int = 20, each: int = 3, side: int = 40, *, images: bool = True
) -> list[str]:
    """Write the release into a folder; the names of its images."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, lists = [], {"train_val": [], "test": []}
    for patient in range(1, patients + 1):
        for number in range(each):
            name = f"{patient:08d}_{number:03d}.png"
            finding = FINDINGS[(patient + number) % len(FINDINGS)]
            sex, view = "FM"[patient % 2], ("AP", "PA")[number % 2]
            age = 20 + 60 * patient // patients
            rows.append(f"{name},{finding},{number},{patient},{age},{sex},{view},{side},{side},0.1,0.1")
            lists["test" if patient % 4 == 0 else "train_val"].append(name)
    (folder / "Data_Entry_2017_v2020.csv").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    for key, names in lists.items():
        (folder / f"{key}_list.txt").write_text("\n".join(names), encoding="utf-8")
    if images:
        (folder / "images").mkdir(exist_ok=True)
        for place, name in enumerate(lists["train_val"] + lists["test"]):
            write_image(folder / "images" / name, place, side)
    return lists["train_val"] + lists["test"]


def write_image(path: Path, seed: int, side: int = 40) -> None:
    """Write a grey image of noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side + seed % 7), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def write_profile(path: Path, root: Path, *, image: int = 16, **settings: str) -> Path:
    """Write a profile of this one source."""
    lines = [f"    {key}: {value}" for key, value in settings.items()]
    text = f"name: small\nsources:\n  nih_cxr14:\n    root: '{root}'\n" + "".join(
        f"{line}\n" for line in lines
    )
    text += f"labels: {{uncertain: negative, blank: missing}}\nsizes: {{image: {image}, smallest_cell: 1}}\n"
    path.write_text(text, encoding="utf-8")
    return path

"""What the table of ``data/`` about encoders holds."""

from __future__ import annotations

from frame.table_columns import NOTE, TEXT, Column, Table, one_of

__all__ = ["ENCODER_TABLES"]

_NUMBER = r"-?\d+(\.\d+)?"
_SIDE = Column("a number of pixels from 0 to 9,999", r"\d{1,4}", count=True)
#: A vector of more numbers is a mistake of typing, and would fill the memory.
_WIDTH = Column(
    "a whole number from 1 to 65,536",
    r"[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-6]",
    count=True,
)
_CHANNELS = Column(
    "one number for each channel with | between them, or nothing",
    rf"{_NUMBER}(\|{_NUMBER}\|{_NUMBER})?",
    blank=True,
)
_MODALITY, _ROLE = (
    r"(chest|skin|fundus)",
    r"(panel|injection|fine_tuning|image_text|pretraining_start)",
)

_ENCODERS = Table(
    name="encoders",
    file="encoders.csv",
    meaning="One encoder: where its weights come from, its vector, and the values that its images must have.",
    origin="the paper's Table 2 and list of checkpoints, and the pages of the checkpoints",
    key=("name",),
    columns={
        "name": Column("a key in small letters and digits", r"[a-z][a-z0-9]*(_[a-z0-9]+)*"),
        "title": TEXT,
        "library": one_of("transformers", "open_clip", "timm", "torchxrayvision", "flair", "pixels", "own"),
        "checkpoint": Column("a name without blanks, or nothing", r"\S+", blank=True),
        "revision": Column("a commit of 40 hexadecimal digits, or nothing", r"[0-9a-f]{40}", blank=True),
        "architecture": Column("a name without blanks", r"\S+"),
        "width": _WIDTH,
        "pooling": one_of(
            *(
                "class_token",
                "patch_mean",
                "pooled_projection",
                "pooled_attention",
                "pooled_feature",
                "pixels",
            )
        ),
        "input_size": _SIDE,
        "native_size": _SIDE,
        "native_resize": _SIDE,
        "native_resampling": one_of("bicubic", "bilinear"),
        "native_mean": _CHANNELS,
        "native_std": _CHANNELS,
        "low": Column("a number", _NUMBER),
        "high": Column("a number", _NUMBER),
        "channels": Column("1 or 3", r"[13]", count=True),
        "licence": NOTE,
        "gating": one_of("none", "agreement", "request"),
        "modalities": Column("modalities with | between them", rf"{_MODALITY}(\|{_MODALITY})*"),
        "roles": Column("roles with | between them", rf"{_ROLE}(\|{_ROLE})*"),
        "kind": one_of("released", "untrained", "pixels"),
        "package": Column("a name of the package index, or nothing", r"[A-Za-z0-9_.-]+", blank=True),
        "loader": Column("a function as module:function, or nothing", r"[\w.]+:\w+", blank=True),
        "cites": Column("a number of the paper's list such as [34], or nothing", r"\[\d+\]", blank=True),
        "note": NOTE,
    },
    rules=(
        "preprocessing is complete",
        "an own encoder has a loader",
        "an encoder of the library pixels has 1 channel",
    ),
)


ENCODER_TABLES = (_ENCODERS,)

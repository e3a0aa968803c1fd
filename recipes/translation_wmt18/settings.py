"""The settings of the translation recipe; the numbers, with their reasons, are in conf/."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.encodings import parse_all
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

CONF = Path(__file__).parent / "conf"
BUILTIN, WMT18 = "builtin", "wmt18"
SPLITS = ("train", "valid", "test")
MAX_POSITIONS = 1024  # fairseq's default, with the end of the sentence

# What the plan writes into the commands itself.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch", "source-lang", "target-lang")},
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **{f"pos-enc-{side}{end}": "--pos-enc" for side in ("encoder", "decoder") for end in ("", "-args")},
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("keep-last-epochs", "keep-interval-updates", "no-epoch-checkpoints"), "--average"),
}
DECIDED_GENERATE = {
    "cpu": "--device",
    "path": "--average",
    "nbest": "the score of one translation a sentence",
    **dict.fromkeys(("gen-subset", "results-path", "user-dir"), "--output"),
    **{name: f"--{name}" for name in ("source-lang", "target-lang")},
    **dict.fromkeys(
        ("bpe", "bpe-codes", "sentencepiece-model", "tokenizer", "remove-bpe", "post-process"), "--subwords"
    ),
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    source_lang: str = field(metadata=about("en, de, ...: the end of the files' names"))
    target_lang: str = field(metadata=about("en, de, ...: the end of the files' names"))
    corpus: str = field(
        metadata=about(f"{WMT18}, {BUILTIN} (a small invented one), or a FOLDER with train.SRC, train.TGT, ...")
    )
    train_set: str = field(default="train", metadata=about("the files NAME.SRC, NAME.TGT of the folder, plain or .gz"))
    valid_set: str = field(default="val", metadata=about("the same, for validation"))
    test_set: str = field(default="test", metadata=about("the same, for the score"))
    limit: int = field(default=0, metadata=about("training pairs (0: all)"))
    bad_lines: Literal["refuse", "drop"] = field(
        default="refuse", metadata=about("of training: drop leaves empty, broken and over-long pairs out")
    )
    subwords: Literal["sentencepiece", "fastbpe"] = field(
        default="sentencepiece", metadata=about("of raw text, or of Moses' words")
    )
    model_type: Literal["unigram", "bpe"] = field(default="unigram", metadata=about("of SentencePiece"))
    vocabulary: int = field(metadata=about("subword types, both languages together"))
    longest: int = field(default=256, metadata=about("pieces of a sentence; more is a bad line"))
    workers: int = field(default=1, metadata=about("processes that prepare the text"))
    arch: str = field(metadata=about("a posenc_transformer architecture"))
    pos_enc: list[str] = field(metadata=about("NAME or NAME[OPTION=VALUE,...]; all are compared with the first"))
    average: int = field(metadata=about("checkpoints at the end whose mean translates (1: the last)"))
    train: Flags = field(metadata=about("a flag of fairseq-train"))
    generate: Flags = field(metadata=about("a flag of fairseq-generate"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        launch.refuse_decided(self.generate, DECIDED_GENERATE, "generate")
        self._refuse_languages()
        for name, least in {
            "vocabulary": 1,
            "longest": 1,
            "workers": 1,
            "average": 1,
            "limit": 0,
            "threads": 0,
        }.items():
            if getattr(self, name) < least:
                raise Refused(f"--{name} is {getattr(self, name)}: {least} or more is wanted")
        self._refuse_sets()
        self._refuse_lengths()
        self._refuse_average()

    def _refuse_sets(self) -> None:
        if self.corpus in (BUILTIN, WMT18):
            for one in fields(Settings):
                if one.name.endswith("_set") and getattr(self, one.name) != one.default:
                    raise Refused(f"--{one.name.replace('_', '-')} is for a FOLDER: {self.corpus} has its own sets")

    def _refuse_lengths(self) -> None:
        self.number("max-tokens", 0)
        for side in ("source", "target"):
            room = self.number(f"max-{side}-positions", MAX_POSITIONS)
            if self.longest >= room:
                raise Refused(
                    f"--longest {self.longest} and the end of the sentence do not fit into {room} positions: "
                    f"--train.max-{side}-positions {self.longest + 1}, or a smaller --longest"
                )

    def _refuse_average(self) -> None:
        """More checkpoints than a training leaves would be missed after it."""
        if "save-interval-updates" in self.train:
            made = self.number("max-update", 0) // self.number("save-interval-updates", 1)
        else:
            made = self.number("max-epoch", 0)
        if 0 < made < self.average:
            raise Refused(f"--average {self.average}: the training makes {made} checkpoints")

    def _refuse_languages(self) -> None:
        for language in (self.source_lang, self.target_lang):
            if not re.fullmatch(r"[A-Za-z]{2,}([_-][A-Za-z0-9]+)*", language):
                raise Refused(f"'{language}' is no language code: en, de, zh, pt_BR, ...")
        if self.source_lang == self.target_lang:
            raise Refused(f"--source-lang and --target-lang are both {self.source_lang}")
        if self.corpus == WMT18 and sorted((self.source_lang, self.target_lang)) not in (["de", "en"], ["cs", "en"]):
            raise Refused(
                f"wmt18 is de-en and cs-en, both ways, not {self.source_lang}-{self.target_lang}: give a FOLDER"
            )

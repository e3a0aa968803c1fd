"""Define the settings of the language model recipe; conf/ holds their values and sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.encodings import Encoding, parse_all, with_option
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

CONF = Path(__file__).parent / "conf"
BUILTIN = "builtin"
WIKITEXT103 = "wikitext103"
TYPES = 267_735  # types of WikiText-103's training text, with <unk> and <eos> (Merity et al. 2017, Table 1)

# Flags that the plan sets itself, and the recipe's options for them.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch")},
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("tokens-per-sample", "max-target-positions"), "--length"),
    **dict.fromkeys(("eval-mem-length", "eval-segment-length"), "--mem-eval and --eval-segment"),
    "same-length": "--eval-same-length",
    "mem-length": "--mem-train",
    "max-tokens": "--train.batch-size, in streams",
    "task": "posenc_lm_memory",
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    corpus: str = field(
        metadata=about(
            f"Text: {WIKITEXT103} (downloaded), {BUILTIN} (small, invented), or a FOLDER with "
            f"wiki.{{train,valid,test}}.tokens or {{train,valid,test}}.txt, plain or .gz, or with the "
            "output of fairseq-preprocess."
        )
    )
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    types: int = launch.at_least(
        0,
        f"Number of word types that the training text must have (0: any number; {WIKITEXT103}: {TYPES:,}).",
        default=0,
    )
    workers: int = launch.at_least(1, "Number of processes of fairseq-preprocess.", default=1)
    length: int = launch.at_least(1, "Number of tokens of a segment in training.")
    mem_train: int = launch.at_least(0, "Number of earlier states that each layer remembers in training (0: none).")
    mem_eval: list[int] = field(metadata=about("Memory lengths in evaluation; each gives a row of the report."))
    eval_segment: int = launch.at_least(
        1,
        "Number of tokens of a segment in evaluation if the memory is longer than --length; otherwise it is --length.",
    )
    eval_clamp: int = launch.at_least(
        0,
        f"If the memory is longer than --length: largest distance of {', '.join(with_option('clamp'))} (0: no limit).",
    )
    eval_same_length: bool = field(
        metadata=about("If the memory is longer than --length: every token attends to the same number of keys.")
    )
    eval_batch: int = launch.at_least(1, "Number of streams in evaluation.")
    split: Literal["test", "valid"] = field(default="test", metadata=about("Split to evaluate."))
    arch: str = field(metadata=about("A posenc_transformer_lm architecture."))
    pos_enc: list[str] = field(metadata=about("Position encodings to compare: NAME or NAME[OPTION=VALUE,...]."))
    train: Flags = field(metadata=about("A flag of fairseq-train."))

    batch_flag = "batch-size"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        if not self.mem_eval or min(self.mem_eval) < 0:
            raise Refused(
                f"--mem-eval is {','.join(map(str, self.mem_eval))}: numbers from 0 on are wanted, 150,640 say"
            )
        self.mem_eval = sorted(set(self.mem_eval))
        if self.corpus == WIKITEXT103:
            self.types = self.types or TYPES
        elif self.corpus == BUILTIN:
            if self.types:
                raise Refused("--types is for a corpus of words of yours: leave it out")
        elif not Path(self.corpus).is_dir():
            raise Refused(f"--corpus {self.corpus}: no such folder; there are: {WIKITEXT103}, {BUILTIN}")
        elif self.prepared and self.types not in (0, types_of(Path(self.corpus))):
            raise Refused(f"--types {self.types}: {self.corpus}/dict.txt has {types_of(Path(self.corpus))}")

    @property
    def own(self) -> bool:
        """Return whether the corpus is the user's own folder."""
        return self.corpus not in (WIKITEXT103, BUILTIN)

    @property
    def prepared(self) -> bool:
        """Return whether the corpus is already binary."""
        return self.own and (Path(self.corpus) / "dict.txt").is_file()

    @property
    def streams(self) -> int:
        """Return the number of training streams of all processes together."""
        return self.number("batch-size", 1) * self.processes * self.nodes

    def memory_of(self, encoding: Encoding) -> int:
        """Return the length of the memory in training."""
        return self.mem_train if encoding.remembers else 0

    def memories_of(self, encoding: Encoding) -> list[int]:
        """Return the lengths of the memory in evaluation."""
        return self.mem_eval if encoding.remembers else [0]

    def protocol(self, memory: int) -> tuple[int, int, bool]:
        """Return the tokens of a segment, the longest distance (0: no limit) and --same-length of an evaluation."""
        if memory > self.length:
            return self.eval_segment, self.eval_clamp, self.eval_same_length
        return self.length, 0, False


def types_of(folder: Path) -> int:
    """Return the number of types in prepared data, with <unk> and <eos> but without fairseq's padding words."""
    lines = (folder / "dict.txt").read_text(encoding="utf-8").splitlines()
    return sum(not line.startswith("madeupword") for line in lines) + 2

"""Define the settings of the language model recipe; conf/ holds their values and sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.encodings import Encoding, parse_all, with_option
from recipes.lib.package import read_lines
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

CONF = Path(__file__).parent / "conf"
BUILTIN = "builtin"
WIKITEXT103 = "wikitext103"
TYPES = 267_735  # types of WikiText-103's training text, with <unk> and <eos> (Merity et al. 2017, Table 1)

# Flags that the plan writes itself, with the option to use instead, or the value or reason.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch")},
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("tokens-per-sample", "max-target-positions"), "--length"),
    **dict.fromkeys(("eval-mem-length", "eval-segment-length"), "--mem-eval and --eval-segment"),
    "same-length": "--eval-same-length",
    "mem-length": "--mem-train",
    "max-tokens": "--train.batch-size, the number of parallel streams of text",
    "task": "posenc_lm_memory",
}

SPLITS = ("train", "valid", "test")
#: Possible names of the file of each split.
NAMES = {
    split: [f"{name}{packed}" for name in (f"wiki.{split}.tokens", f"{split}.txt") for packed in ("", ".gz")]
    for split in SPLITS
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    corpus: str = field(
        metadata=about(
            f"Text: {WIKITEXT103} (downloaded), {BUILTIN} (a small invented text), or a FOLDER. The folder has "
            f"wiki.{{train,valid,test}}.tokens or {{train,valid,test}}.txt, plain or .gz, or the output of "
            "fairseq-preprocess."
        )
    )
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    types: int = launch.at_least(
        0,
        f"Expected number of word types in the training text (0: do not check; {WIKITEXT103}: {TYPES:,}).",
        default=0,
    )
    workers: int = launch.at_least(1, "Number of processes of fairseq-preprocess.", default=1)
    length: int = launch.at_least(1, "Number of tokens per segment in training.")
    mem_train: int = launch.at_least(
        0, "Number of hidden states of earlier tokens that each layer reads in training (0: none)."
    )
    mem_eval: list[int] = field(
        metadata=about(
            "Numbers of hidden states of earlier tokens that each layer reads in evaluation; the report has a row for "
            "each number."
        )
    )
    eval_segment: int = launch.at_least(
        1,
        "Number of tokens per segment in evaluations with a memory longer than --length (in other evaluations: "
        "--length).",
    )
    eval_clamp: int = launch.at_least(
        0,
        f"In evaluations with a memory longer than --length, {' and '.join(with_option('clamp'))} treat "
        "distances above N as N (0: no limit).",
    )
    eval_same_length: bool = field(
        metadata=about(
            "In evaluations with a memory longer than --length, let every token attend to the same number of keys."
        )
    )
    eval_batch: int = launch.at_least(1, "Number of streams in evaluation.")
    split: Literal["test", "valid"] = field(default="test", metadata=about("Split to evaluate."))
    arch: str = field(metadata=about("Architecture, such as posenc_transformer_lm_wt103."))
    pos_enc: list[str] = field(metadata=about("Position encodings to compare: NAME or NAME[OPTION=VALUE,...]."))
    train: Flags = field(metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))

    batch_option = "--train.batch-size"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        if not self.mem_eval or min(self.mem_eval) < 0:
            text = ",".join(map(str, self.mem_eval))
            problem = f"--mem-eval {text}: there must be at least one length of the memory, and no length below 0"
            raise Refused(f"{problem}. Give --mem-eval 150,640, for example.")
        self.mem_eval = sorted(set(self.mem_eval))
        if self.corpus == WIKITEXT103:
            self.types = self.types or TYPES
        elif self.corpus == BUILTIN:
            if self.types:
                raise Refused(
                    f"--types has no effect: --corpus {BUILTIN} has no fixed number of word types. Leave it out."
                )
        elif not Path(self.corpus).is_dir():
            problem = f"the folder does not exist. Known corpora are {WIKITEXT103} and {BUILTIN}"
            raise Refused(f"--corpus {self.corpus}: {problem}.")
        elif self.prepared and self.types not in (0, types := types_of(Path(self.corpus))):
            raise Refused(f"--types {self.types}: {self.corpus}/dict.txt has {types} word types. Give --types {types}.")

    def refuse_missing(self) -> None:
        """Refuse a corpus without all splits; otherwise the error would come only after the stage `check`."""
        if not self.own or self.prepared:
            return
        folder = Path(self.corpus)
        if missing := [split for split in SPLITS if not any((folder / name).is_file() for name in NAMES[split])]:
            files = " and ".join(f"{split}.txt" for split in missing)
            advice = "The names wiki.SPLIT.tokens and the ending .gz are possible, too"
            raise Refused(f"--corpus {self.corpus}: the folder has no text of these splits. Add {files}. {advice}.")

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
        """Return the number of parallel streams of text in training, summed over all processes."""
        return self.number("batch-size", 1) * self.processes * self.nodes

    def memory_of(self, encoding: Encoding) -> int:
        """Return the memory length of an encoding in training."""
        return self.mem_train if encoding.remembers else 0

    def memories_of(self, encoding: Encoding) -> list[int]:
        """Return the memory lengths of an encoding in evaluation."""
        return self.mem_eval if encoding.remembers else [0]

    def protocol(self, memory: int) -> tuple[int, int, bool]:
        """Return the segment length, the largest distance (0: no limit) and --same-length of an evaluation.

        The --eval options are used only if the memory is longer than --length.
        """
        if memory > self.length:
            return self.eval_segment, self.eval_clamp, self.eval_same_length
        return self.length, 0, False


def types_of(folder: Path) -> int:
    """Return the number of word types in prepared data, with <unk> and <eos> but without fairseq's padding words."""
    lines = read_lines(folder / "dict.txt")
    return sum(not line.startswith("madeupword") for line in lines) + 2

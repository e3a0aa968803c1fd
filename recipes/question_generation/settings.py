"""Settings of the question generation recipe; conf/ has the values and their sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

CONF = Path(__file__).parent / "conf"
BUILTIN, SQUAD, CMRC, SCRATCH = "builtin", "squad", "cmrc", "scratch"
RECORD = "questions.json"  # the record in a prepared folder
SETS = ("train_set", "valid_set", "test_set")
#: Settings of the preparation, which have no effect on questions that are already prepared.
PREPARING = ("bad", "context", "tokenizer", "cased", "vocabulary", "longest_answer", "workers", "limit", "limit_valid")

# Flags that the plan writes itself, and the setting that controls each of them.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch", "freeze-encoder")},
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("no-epoch-checkpoints", "keep-interval-updates"), "the best and the last checkpoint being kept"),
    "encoder-from": "--encoder",
    "no-copy": "--copy",
    "max-source-positions": "--longest",
    "max-target-positions": "--longest-question",
    "task": "posenc_question_generation",
}
DECIDED_GENERATE = {
    "cpu": "--device",
    "nbest": "the score of one question a source",
    "skip-invalid-size-inputs-valid-test": "the score of all items",
    **dict.fromkeys(("max-source-positions", "max-target-positions"), "--longest, --longest-question"),
    **dict.fromkeys(("path", "results-path", "user-dir"), "--output"),
    "gen-subset": "--split",
    **dict.fromkeys(("bpe", "tokenizer", "remove-bpe", "post-process"), "the pieces of the prepared questions"),
}


@dataclass(frozen=True)
class Variant:
    """A model of the comparison."""

    encoding: Encoding
    copy: bool

    @property
    def label(self) -> str:
        return self.encoding.label if self.copy else f"{self.encoding.label}, no copy"

    @property
    def slug(self) -> str:
        """Return the name of the model in paths and stages."""
        return self.encoding.slug if self.copy else f"{self.encoding.slug}.no-copy"


@dataclass(kw_only=True)
class Settings(launch.Training):
    dataset: str = field(
        metadata=about(
            f"Questions: {SQUAD} or {CMRC} (downloaded), {BUILTIN} (small, invented), your FOLDER with"
            f" {{train,valid,test}}.json or src-*.txt and tgt-*.txt, a FILE in SQuAD's format (split "
            "by article), or a folder that prepare_questions.py wrote."
        )
    )
    numbers_of: Literal["", "squad", "cmrc"] = field(
        default="",
        metadata=about("Dataset that a preset is for; the other one is refused."),
    )
    train_set: str = field(default="", metadata=about("Training file of the FOLDER, if it has another name."))
    valid_set: str = field(default="", metadata=about("Validation file of the FOLDER, if it has another name."))
    test_set: str = field(default="", metadata=about("Test file of the FOLDER, if it has another name."))
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    limit: int = launch.at_least(0, "Number of training questions to use (0: all).", default=0)
    limit_valid: int = launch.at_least(0, "Number of validation and test questions to use (0: all).", default=0)
    bad: Literal["refuse", "skip", "repair"] = field(
        metadata=about("What to do with unusable questions: stop with a list, leave them out, or repair them.")
    )
    context: Literal["paragraph", "sentence"] = field(
        metadata=about(
            "Text that the model sees: the whole paragraph or the sentence of the answer; for lines "
            "always the sentence."
        )
    )
    tokenizer: Literal["auto", "words", "chars"] = field(
        default="auto",
        metadata=about(f"Units of text with --encoder {SCRATCH}; auto takes chars for Chinese and words otherwise."),
    )
    cased: bool = field(default=False, metadata=about("Keep capitals in words and chars."))
    vocabulary: int = launch.at_least(5, "Number of words or characters in the vocabulary; others can only be copied.")
    longest: int = launch.at_least(8, "Maximum number of pieces of a source.")
    longest_answer: int = launch.at_least(1, "Maximum number of pieces of an answer.", default=100)
    longest_question: int = launch.at_least(1, "Maximum number of pieces of a question.", default=50)
    workers: int = launch.at_least(1, "Number of processes of prepare_questions.py.", default=1)
    encoder: str = field(metadata=about(f"Encoder: a Hugging Face folder of a BERT or RoBERTa, or {SCRATCH}."))
    freeze_encoder: bool = field(default=False, metadata=about("Keep the encoder fixed."))
    copy: Literal["on", "off", "both"] = field(
        default="on",
        metadata=about("Whether models copy words from the source; both trains one model with and one without."),
    )
    split: Literal["valid", "test"] = field(default="valid", metadata=about("Split for which questions are generated."))
    arch: str = field(metadata=about("A posenc_question_generation architecture."))
    pos_enc: list[str] = field(
        metadata=about("Position encodings of the decoder to compare: NAME or NAME[OPTION=VALUE,...].")
    )
    train: Flags = field(metadata=about("A flag of fairseq-train."))
    generate: Flags = field(metadata=about("A flag of fairseq-generate."))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        launch.refuse_decided(self.generate, DECIDED_GENERATE, "generate")
        if not (self.of_lines or self.prepared) and self.longest < self.longest_answer + 4:
            raise Refused(f"--longest {self.longest} leaves no room behind --longest-answer {self.longest_answer}")
        self._check_dataset()
        if self.scratch and self.freeze_encoder:
            raise Refused(f"--freeze-encoder is for --encoder DIR: with {SCRATCH} it would keep random numbers")
        if not self.scratch and (self.tokenizer != "auto" or self.cased):
            raise Refused(f"--tokenizer and --cased are for --encoder {SCRATCH}: an encoder has its own pieces")

    def _check_dataset(self) -> None:
        named = [name for name in SETS if getattr(self, name)]
        if self.own and not Path(self.dataset).exists():
            raise Refused(f"--dataset {self.dataset}: no such file or folder; there are: {SQUAD}, {CMRC}, {BUILTIN}")
        if {self.dataset, self.numbers_of} == {SQUAD, CMRC}:
            raise Refused(
                f"--dataset {self.dataset}: the numbers of this preset are those of {self.numbers_of}; "
                "--preset paper is of squad, paper-cmrc of cmrc (or --numbers-of '' takes them all the same)"
            )
        if named and not (self.own and Path(self.dataset).is_dir() and not self.prepared):
            raise Refused(f"--{named[0].replace('_', '-')} names a file of a FOLDER of your questions: leave it out")
        if named and not (self.train_set and self.valid_set):
            raise Refused("--train-set and --valid-set go together")

    def unused(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.dataset not in (SQUAD, CMRC):
            found["raw"] = f"nothing is fetched for --dataset {self.dataset}"
            found["numbers_of"] = f"it keeps {SQUAD} and {CMRC} apart"
        if not self.scratch:
            found["vocabulary"] = f"the pieces are those of --encoder {self.encoder}"
        if self.of_lines:
            found["longest_answer"] = f"the lines of {self.dataset} have no answers"
            if self.context == "paragraph":
                found["context"] = f"the lines of {self.dataset} are sentences"
        if self.prepared:
            found |= dict.fromkeys(PREPARING, f"the questions of {self.dataset} are prepared, see its {RECORD}")
        return {name: why for name, why in found.items() if getattr(self, name)}  # not those that are 0 or empty

    @property
    def own(self) -> bool:
        return self.dataset not in (BUILTIN, SQUAD, CMRC)

    @property
    def lone(self) -> bool:
        return self.own and Path(self.dataset).is_file()

    @property
    def prepared(self) -> bool:
        return self.own and (Path(self.dataset) / RECORD).is_file()

    @property
    def of_lines(self) -> bool:
        """Return whether the questions come with sentences instead of answers, judged by the file names."""
        if not self.own or self.lone:
            return False
        name = self.train_set or next((path.name for path in Path(self.dataset).glob("src-train.txt*")), "")
        return name.startswith("src-")

    @property
    def scratch(self) -> bool:
        return self.encoder == SCRATCH

    @property
    def variants(self) -> list[Variant]:
        copies = {"on": [True], "off": [False], "both": [True, False]}[self.copy]
        return [Variant(encoding, copy) for encoding in self.encodings for copy in copies]

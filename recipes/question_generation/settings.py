"""Define the settings of the question generation recipe; conf/ has the values and their sources."""

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

# Flags that the plan writes itself, with the option to use instead, or the value or reason.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch", "freeze-encoder")},
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("no-epoch-checkpoints", "keep-interval-updates"), "the best and the last checkpoint are kept"),
    "encoder-from": "--encoder",
    "no-copy": "--copy",
    "max-source-positions": "--longest",
    "max-target-positions": "--longest-question",
    "task": "posenc_question_generation",
}
DECIDED_GENERATE = {
    "cpu": "--device",
    "nbest": "one question per source is scored",
    "skip-invalid-size-inputs-valid-test": "all items are scored",
    **dict.fromkeys(("max-source-positions", "max-target-positions"), "--longest and --longest-question"),
    **dict.fromkeys(("path", "results-path", "user-dir"), "--output"),
    "gen-subset": "--split",
    **dict.fromkeys(("bpe", "tokenizer", "remove-bpe", "post-process"), "the prepared data has its own tokenizer"),
}


@dataclass(frozen=True)
class Variant:
    """Name a model of the comparison: an encoding, with or without copying."""

    encoding: Encoding
    copy: bool

    @property
    def label(self) -> str:
        """Return the name of the model in tables and figures."""
        return self.encoding.label if self.copy else f"{self.encoding.label}, no copy"

    @property
    def slug(self) -> str:
        """Return the name of the model in paths and stages."""
        return self.encoding.slug if self.copy else f"{self.encoding.slug}.no-copy"


@dataclass(kw_only=True)
class Settings(launch.Training):
    dataset: str = field(
        metadata=about(
            f"Questions: {SQUAD} or {CMRC} (downloaded), {BUILTIN} (a small invented set), or your own. Your own "
            "questions are a folder with {train,valid,test}.json or with src-*.txt and tgt-*.txt, a file in SQuAD's "
            "format (split by article), or a folder that prepare_questions.py wrote."
        )
    )
    numbers_of: Literal["", "squad", "cmrc"] = field(
        default="",
        metadata=about(
            "Data set for which the values of the preset are meant. A preset for squad refuses --dataset cmrc, and "
            "vice versa."
        ),
    )
    train_set: str = field(default="", metadata=about("Name of your training file, if not train.json."))
    valid_set: str = field(default="", metadata=about("Name of your validation file, if not valid.json."))
    test_set: str = field(default="", metadata=about("Name of your test file, if not test.json."))
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    limit: int = launch.at_least(0, "Number of training questions to use (0: all).", default=0)
    limit_valid: int = launch.at_least(0, "Number of validation and test questions to use (0: all).", default=0)
    bad: Literal["refuse", "skip", "repair"] = field(
        metadata=about(
            "What to do with bad questions: refuse stops with a list, skip leaves them out, repair corrects them."
        )
    )
    context: Literal["paragraph", "sentence"] = field(
        metadata=about(
            "Text that the model sees: the whole paragraph, or only the sentence with the answer. Files src-*.txt "
            "contain only sentences."
        )
    )
    tokenizer: Literal["auto", "words", "chars"] = field(
        default="auto",
        metadata=about(
            f"For --encoder {SCRATCH}: split text into words or chars (auto: chars for Chinese, otherwise words)."
        ),
    )
    cased: bool = field(default=False, metadata=about(f"For --encoder {SCRATCH}: do not lower-case the text."))
    vocabulary: int = launch.at_least(
        5,
        f"For --encoder {SCRATCH}: size of the vocabulary (words or characters). Words outside the "
        "vocabulary can only be copied.",
    )
    longest: int = launch.at_least(8, "Maximum number of pieces per source.")
    longest_answer: int = launch.at_least(1, "Maximum number of pieces per answer.", default=100)
    longest_question: int = launch.at_least(1, "Maximum number of pieces per question.", default=50)
    workers: int = launch.at_least(1, "Number of processes of prepare_questions.py.", default=1)
    encoder: str = field(
        metadata=about(f"Encoder: folder of a BERT or RoBERTa from Hugging Face, or {SCRATCH} (not pretrained).")
    )
    freeze_encoder: bool = field(default=False, metadata=about("Do not train the pretrained encoder."))
    copy: Literal["on", "off", "both"] = field(
        default="on",
        metadata=about(
            "Whether models can copy words from the source; `both` trains two models per "
            "encoding, one with and one without copying."
        ),
    )
    split: Literal["valid", "test"] = field(default="valid", metadata=about("Split for which questions are generated."))
    arch: str = field(metadata=about("Architecture, such as posenc_question_generation."))
    pos_enc: list[str] = field(
        metadata=about("Position encodings of the decoder to compare: NAME or NAME[OPTION=VALUE,...].")
    )
    train: Flags = field(metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))
    generate: Flags = field(metadata=about("Flag of fairseq-generate, for example --generate.beam 5."))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        launch.refuse_decided(self.generate, DECIDED_GENERATE, "generate")
        if not (self.of_lines or self.prepared) and self.longest < self.longest_answer + 4:
            problem = f"a source of this length has no room for an answer of {self.longest_answer} pieces"
            raise Refused(f"--longest {self.longest}: {problem}. Lower --longest-answer, or raise --longest.")
        self._check_dataset()
        if self.scratch and self.freeze_encoder:
            problem = f"with --encoder {SCRATCH} the encoder would keep its random weights"
            raise Refused(f"--freeze-encoder: {problem}. Leave out --freeze-encoder, or give --encoder DIR.")
        if not self.scratch and (self.tokenizer != "auto" or self.cased):
            problem = f"--encoder {self.encoder} has its own tokenizer"
            raise Refused(f"--tokenizer and --cased have no effect: {problem}. Leave out both options.")

    def _check_dataset(self) -> None:
        set_files = [name for name in SETS if getattr(self, name)]
        if self.own and not Path(self.dataset).exists():
            problem = "the file or folder does not exist"
            raise Refused(f"--dataset {self.dataset}: {problem}. Known data sets are {SQUAD}, {CMRC} and {BUILTIN}.")
        if {self.dataset, self.numbers_of} == {SQUAD, CMRC}:
            raise Refused(
                f"--dataset {self.dataset}: this preset is for {self.numbers_of}. Use --preset paper for {SQUAD} and "
                f"paper-cmrc for {CMRC}. To use the settings of this preset nevertheless, give --numbers-of ''."
            )
        if set_files and not (self.own and Path(self.dataset).is_dir() and not self.prepared):
            option = f"--{set_files[0].replace('_', '-')}"
            raise Refused(f"{option} has no effect unless --dataset is a folder of unprepared questions. Leave it out.")
        if set_files and not (self.train_set and self.valid_set):
            raise Refused("--train-set and --valid-set must be given together. Give both options or neither.")

    def unused(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        if self.dataset not in (SQUAD, CMRC):
            reasons["raw"] = f"nothing is downloaded for --dataset {self.dataset}"
            reasons["numbers_of"] = f"the setting applies only to --dataset {SQUAD} and {CMRC}"
        if not self.scratch:
            reasons["vocabulary"] = f"--encoder {self.encoder} has its own vocabulary"
        if self.of_lines:
            reasons["longest_answer"] = f"the lines of {self.dataset} have no answers"
            if self.context == "paragraph":
                reasons["context"] = f"the lines of {self.dataset} are sentences"
        if self.prepared:
            reasons |= dict.fromkeys(PREPARING, f"the questions of {self.dataset} are already prepared (see {RECORD})")
        return {name: reason for name, reason in reasons.items() if getattr(self, name)}  # ignore 0 and empty values

    @property
    def own(self) -> bool:
        """Return whether the questions are the user's own."""
        return self.dataset not in (BUILTIN, SQUAD, CMRC)

    @property
    def lone(self) -> bool:
        """Return whether all questions are in one file of the user."""
        return self.own and Path(self.dataset).is_file()

    @property
    def prepared(self) -> bool:
        """Return whether prepare_questions.py has already written the data set."""
        return self.own and (Path(self.dataset) / RECORD).is_file()

    @property
    def of_lines(self) -> bool:
        """Return whether, according to the file names, the questions come with sentences instead of answers."""
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

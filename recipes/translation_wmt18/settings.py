"""Define the settings of the translation recipe; conf/ holds their values and the reasons for them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.encodings import parse_stacks, refuse_misplaced
from recipes.lib.places import RAW
from recipes.lib.recipe import about
from recipes.lib.translation.parallel import advice
from recipes.lib.translation.subwords import LEAST_COVERAGE
from recipes.lib.values import Flags, Refused

from .layout import Direction, Variant, checked, parse_direction

CONF = Path(__file__).parent / "conf"
BUILTIN, WMT18 = "builtin", "wmt18"
SPLITS = ("train", "valid", "test")
MAX_POSITIONS = 1024  # fairseq's default, which includes </s>
RECORD = "corpus.json"  # exists in folders of prepare_wmt18.sh

#: Flags that the plan sets itself, and the option that controls each of them.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch")},
    **dict.fromkeys(("source-lang", "target-lang"), "--direction"),
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **{f"pos-enc-{side}{end}": "--pos-enc" for side in ("encoder", "decoder") for end in ("", "-args")},
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("keep-last-epochs", "keep-interval-updates", "no-epoch-checkpoints"), "--average"),
}
DECIDED_GENERATE = {
    "cpu": "--device",
    "path": "--average",
    "task": "--generate.lenpen-form",
    "skip-invalid-size-inputs-valid-test": "--train-longest-words",
    "nbest": "it scores one translation per sentence",
    **dict.fromkeys(("gen-subset", "results-path", "user-dir"), "--output"),
    **dict.fromkeys(("source-lang", "target-lang"), "--direction"),
    **dict.fromkeys(
        ("bpe", "bpe-codes", "sentencepiece-model", "tokenizer", "remove-bpe", "post-process"), "--subwords"
    ),
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    direction: list[str] = field(
        default_factory=list, metadata=about("Directions to train and score: SOURCE-TARGET, such as de-en,cs-en.")
    )
    source_lang: str = field(
        default="",
        metadata=about("Source language, as in the suffix of the files; replaces the source language of --direction."),
    )
    target_lang: str = field(
        default="",
        metadata=about("Target language, as in the suffix of the files; replaces the target language of --direction."),
    )
    corpus: str = field(
        metadata=about(
            f"Text: {WMT18}, {BUILTIN} (a small invented text), or a folder with a file per split and language."
        )
    )
    raw: str = field(default=RAW, metadata=about(f"Folder for the downloaded archives of {WMT18}."))
    newstest: str = field(
        default="",
        metadata=about(
            f"For {WMT18}: your folder with the test sets, or `sacrebleu` to get them with sacrebleu (unset: download "
            "them from statmt.org)."
        ),
    )
    train_set: str = field(
        default="train", metadata=about("Name of your training files, without the suffix of the language.")
    )
    valid_set: str = field(
        default="",
        metadata=about("Name of your validation files (unset: val, or valid if the folder has no val.*)."),
    )
    test_set: str = field(default="test", metadata=about("Name of the test files, without the suffix of the language."))
    limit: int = launch.at_least(
        0, f"Number of training pairs to use (0: all). The first pairs of {WMT18} are from Europarl.", default=0
    )
    bad_lines: Literal["refuse", "drop"] = field(
        default="refuse",
        metadata=about("What to do with bad training pairs: refuse stops with a list, drop leaves them out."),
    )
    subwords: Literal["sentencepiece", "fastbpe"] = field(
        default="sentencepiece",
        metadata=about("Subword method: sentencepiece on raw text, or fastbpe on words of the Moses tokenizer."),
    )
    model_type: Literal["unigram", "bpe"] = field(default="unigram", metadata=about("Type of the SentencePiece model."))
    character_coverage: float = field(
        default=1.0,
        metadata=about(
            "For SentencePiece: fraction of the characters in the training text that the subword pieces must cover, "
            "such as 0.9995."
        ),
    )
    separate: bool = field(
        default=False, metadata=about("Learn subwords and a dictionary for each language instead of one for both.")
    )
    vocabulary: int = launch.at_least(
        1, "Number of subword types for both languages together (with --separate: for each language)."
    )
    longest: int = launch.at_least(
        1,
        "Maximum length of a sentence in subword pieces. Longer sentences are reported as bad lines.",
        default=256,
    )
    train_longest_words: int = launch.at_least(
        0,
        "Train and validate on pairs with at most this number of words per side, and report BLEU by source length "
        "(0: use all lengths). Pairs that do not fit into --train.max-source-positions and "
        "--train.max-target-positions are also left out.",
        default=0,
    )
    lengths: list[int] = field(
        default_factory=list,
        metadata=about(
            "Report BLEU for groups of source lengths with these upper bounds in words, such as 10,20,40. The value "
            "of --train-longest-words is always one of the bounds."
        ),
    )
    workers: int = launch.at_least(1, "Number of processes that prepare the text.", default=1)
    arch: str = field(metadata=about("Architecture of the models, such as posenc_transformer_wmt_en_de."))
    pos_enc: list[str] = field(
        metadata=about(
            "Position encodings to compare with the first one: NAME, NAME[OPTION=VALUE,...] or ENCODER/DECODER."
        )
    )
    beside: list[str] = field(
        default_factory=list, metadata=about("Folders of earlier runs; their rows are added to the comparison.")
    )
    average: int = launch.at_least(1, "Number of last checkpoints to average (1: only the last).")
    measure: bool = field(
        default=True,
        metadata=about("Measure the parameters, speed and memory of the models (false: leave these columns out)."),
    )
    measure_seconds: int = launch.at_least(
        1, "How long the speed of all models is measured in training, and again in translation, in seconds.", default=12
    )
    train: Flags = field(metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))
    generate: Flags = field(metadata=about("Flag of fairseq-generate, for example --generate.beam 5."))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_stacks(self.pos_enc)
        refuse_misplaced(self.encodings)
        launch.refuse_decided(self.train, DECIDED)
        launch.refuse_decided(self.generate, DECIDED_GENERATE, "generate")
        self.directions = self._directions()
        if not LEAST_COVERAGE <= self.character_coverage <= 1:
            raise Refused(
                f"--character-coverage {self.character_coverage}: the value must be from {LEAST_COVERAGE} to 1."
            )
        self._refuse_sets()
        self._refuse_shared()
        self._refuse_lengths()
        self._refuse_average()

    def _directions(self) -> list[Direction]:
        """Return the directions; --source-lang and --target-lang may replace the languages of a single direction."""
        directions = list(dict.fromkeys(map(parse_direction, self.direction)))
        if self.source_lang or self.target_lang:
            if len(directions) > 1:
                raise Refused(
                    "--direction has several directions, but --source-lang and --target-lang set a single direction. "
                    "Leave out --source-lang and --target-lang."
                )
            source, target = (directions[0].source, directions[0].target) if directions else ("", "")
            directions = [checked(Direction(self.source_lang or source, self.target_lang or target))]
        if not directions:
            raise Refused("--direction is empty. Give SOURCE-TARGET, for example en-de.")
        for direction in directions:
            if self.corpus == WMT18 and direction.pair not in ({"de", "en"}, {"cs", "en"}):
                problem = f"{WMT18} has de-en and cs-en in both directions, but not {direction.label}"
                raise Refused(f"--corpus {WMT18}: {problem}. Give a folder with your own text.")
        return directions

    @property
    def variants(self) -> list[Variant]:
        """Return the models of a direction, grouped by seed."""
        return [Variant(encoding, seed, self.seed) for seed in self.training_seeds.seeds for encoding in self.encodings]

    @property
    def sets(self) -> dict[str, str]:
        """Return the base name of the files of each split."""
        if self.corpus in (BUILTIN, WMT18):
            return dict(zip(SPLITS, SPLITS, strict=True))
        has_val = any(Path(self.corpus).glob("val.*"))
        valid = self.valid_set or ("valid" if any(Path(self.corpus).glob("valid.*")) and not has_val else "val")
        return {"train": self.train_set, "valid": valid, "test": self.test_set}

    @property
    def longest_training(self) -> int:
        """Return the maximum number of subword pieces of a training sentence.

        With --train-longest-words, training sentences must fit into the model's positions, but test sentences may be
        longer.
        """
        if not self.train_longest_words:
            return self.longest
        return min(self.longest, *(self.room(side) - 1 for side in ("source", "target")))

    def room(self, side: str) -> int:
        """Return how many positions the models have for a sentence of the side `source` or `target`."""
        return self.number(f"max-{side}-positions", MAX_POSITIONS)

    @property
    def length_bounds(self) -> list[int]:
        """Return the upper bounds of the groups of source lengths, or an empty list to report no BLEU by length."""
        longest = self.train_longest_words
        steps = self.lengths or [longest * 5 // 4, longest * 3 // 2, longest * 2]
        return sorted({*steps, longest} - {0})

    def refuse_missing(self) -> None:
        """Refuse a corpus that lacks a needed file; otherwise the error would come only after the stage `check`."""
        if self.corpus in (BUILTIN, WMT18):
            return
        folder = Path(self.corpus)
        for direction in self.directions:
            for name in self.sets.values():
                for language in (direction.source, direction.target):
                    file = folder / f"{name}.{language}"
                    if not any(path.is_file() for path in (file, file.with_name(f"{file.name}.gz"))):
                        problem = f"neither {file} nor {file.name}.gz exists"
                        raise Refused(f"--corpus {self.corpus}: {problem}. {advice(folder, name, language)}")

    def unused(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        if self.corpus != WMT18:
            reasons["raw"] = f"nothing is fetched for --corpus {self.corpus}"
        if self.subwords == "fastbpe":
            reasons |= dict.fromkeys(("model_type", "character_coverage"), "only SentencePiece uses this option")
        if not self.measure:
            reasons["measure_seconds"] = "nothing is measured with --measure false"
        return reasons

    def _refuse_sets(self) -> None:
        if self.newstest and self.corpus != WMT18:
            raise Refused(f"--newstest is only for --corpus {WMT18}. Name the test set of your folder with --test-set.")
        if self.corpus in (BUILTIN, WMT18):
            for setting in fields(Settings):
                if setting.name.endswith("_set") and getattr(self, setting.name) != setting.default:
                    option = f"--{setting.name.replace('_', '-')}"
                    raise Refused(f"{option} is only for --corpus DIR. Leave out this option for {self.corpus}.")

    def _refuse_shared(self) -> None:
        """Refuse to share embeddings of separate dictionaries; otherwise training fails after the text was prepared."""
        if self.separate and self.train.get("share-all-embeddings"):
            raise Refused(
                "--separate gives each language its own dictionary, so encoder and decoder cannot share embeddings. "
                "Add --train.share-all-embeddings false. To tie the decoder's input and output embeddings, also add "
                "--train.share-decoder-input-output-embed true."
            )

    def _refuse_lengths(self) -> None:
        self.number("max-tokens", 0)
        for side in ("source", "target"):
            room = self.room(side)
            if self.longest >= room and not self.train_longest_words:
                raise Refused(
                    f"--longest {self.longest}: a sentence of this length and </s> do not fit into {room} positions. "
                    f"Add --train.max-{side}-positions {self.longest + 1} or reduce --longest."
                )
        if any(bound < 1 for bound in self.lengths):
            raise Refused(f"--lengths {','.join(map(str, self.lengths))}: each number of words must be at least 1.")

    def _refuse_average(self) -> None:
        """Refuse to average more checkpoints than training writes; otherwise averaging fails after the training."""
        if "save-interval-updates" in self.train:
            every = self.number("save-interval-updates", 1)
            if every < 1:
                problem = f"--train.save-interval-updates {every}: the value must be at least 1"
                raise Refused(f"{problem}. To save after each epoch, leave the flag out.")
            saved = self.number("max-update", 0) // every
        else:
            ends = [self.number(f"max-{unit}", 0) for unit in ("epoch", "update")]  # an epoch has at least one update
            saved = min(filter(None, ends), default=0)
        if 0 < saved < self.average:
            problem = f"the training saves only {saved} {'checkpoint' if saved == 1 else 'checkpoints'}"
            advice = f"Give --average {saved}, or save more often with --train.save-interval-updates N"
            raise Refused(f"--average {self.average}: {problem}. {advice}.")

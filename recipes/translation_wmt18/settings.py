"""Define the settings of the translation recipe; conf/ holds their values and the reasons for them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.encodings import parse_stacks
from recipes.lib.places import RAW
from recipes.lib.recipe import about
from recipes.lib.translation.subwords import LEAST_COVERAGE
from recipes.lib.values import Flags, Refused

from .layout import Direction, Variant, checked, parse_direction

CONF = Path(__file__).parent / "conf"
BUILTIN, WMT18 = "builtin", "wmt18"
SPLITS = ("train", "valid", "test")
MAX_POSITIONS = 1024  # fairseq's default, which includes </s>
MADE = "corpus.json"  # exists in folders of prepare_wmt18.sh, whose validation set is `valid`

# Flags that the plan sets itself, and the recipe's options for them.
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
    "nbest": "the score of one translation a sentence",
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
        default="", metadata=about("Language at the end of the files' names, instead of --direction.")
    )
    target_lang: str = field(
        default="", metadata=about("Language at the end of the files' names, instead of --direction.")
    )
    seeds: list[int] = field(
        default_factory=list,
        metadata=about("Train with these random seeds, such as 1,2,3, and report the mean (unset: --seed)."),
    )
    corpus: str = field(
        metadata=about(f"Text: {WMT18}, {BUILTIN} (small, invented), or a FOLDER with train.SRC, train.TGT and so on.")
    )
    raw: str = field(default=RAW, metadata=about(f"Folder for the archives of {WMT18}."))
    newstest: str = field(
        default="",
        metadata=about(f"For {WMT18}: your folder with the test sets, or sacrebleu (unset: they are downloaded)."),
    )
    train_set: str = field(
        default="train", metadata=about("Name of the training files NAME.SRC and NAME.TGT in the FOLDER, plain or .gz.")
    )
    valid_set: str = field(
        default="",
        metadata=about("Name of the validation files (unset: val, or valid if prepare_wmt18.sh wrote the FOLDER)."),
    )
    test_set: str = field(default="test", metadata=about("Name of the test files."))
    limit: int = launch.at_least(
        0, f"Number of training pairs to use (0: all); for {WMT18} they come from Europarl.", default=0
    )
    bad_lines: Literal["refuse", "drop"] = field(
        default="refuse",
        metadata=about("What to do with bad training pairs: refuse stops with a list, drop leaves them out."),
    )
    subwords: Literal["sentencepiece", "fastbpe"] = field(
        default="sentencepiece",
        metadata=about("Subwords: sentencepiece on raw text, or fastbpe on words of the Moses tokenizer."),
    )
    model_type: Literal["unigram", "bpe"] = field(default="unigram", metadata=about("Type of the SentencePiece model."))
    character_coverage: float = field(
        default=1.0,
        metadata=about(
            "For SentencePiece: share of the training text's characters that become pieces, such as 0.9995."
        ),
    )
    separate: bool = field(
        default=False, metadata=about("Learn subwords and a dictionary for each language instead of one for both.")
    )
    vocabulary: int = launch.at_least(
        1, "Number of subword types, for both languages together, or for each with --separate."
    )
    longest: int = launch.at_least(
        1, "Longest sentence in subword pieces; longer ones are reported as bad lines.", default=256
    )
    train_longest_words: int = launch.at_least(
        0,
        "Train and validate on pairs of at most this number of words per side, and report BLEU by"
        " length (0: all lengths). --train.max-source-positions sets the length of the models; "
        "longer pairs are left out.",
        default=0,
    )
    lengths: list[int] = field(
        default_factory=list,
        metadata=about(
            "Report BLEU by source length in words: upper bounds of the groups, such as 10,20,40; "
            "--train-longest-words is one of them."
        ),
    )
    workers: int = launch.at_least(1, "Number of processes that prepare the text.", default=1)
    arch: str = field(metadata=about("A posenc_transformer architecture."))
    pos_enc: list[str] = field(
        metadata=about(
            "Position encodings to compare with the first one: NAME, NAME[OPTION=VALUE,...] or ENCODER/DECODER."
        )
    )
    beside: list[str] = field(
        default_factory=list, metadata=about("Folders of earlier runs whose rows are added to the comparison.")
    )
    average: int = launch.at_least(1, "Number of last checkpoints to average (1: only the last).")
    train: Flags = field(metadata=about("A flag of fairseq-train."))
    generate: Flags = field(metadata=about("A flag of fairseq-generate."))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_stacks(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        launch.refuse_decided(self.generate, DECIDED_GENERATE, "generate")
        self.directions = self._directions()
        if not LEAST_COVERAGE <= self.character_coverage <= 1:
            raise Refused(f"--character-coverage is {self.character_coverage}: {LEAST_COVERAGE} to 1 is wanted")
        self._refuse_sets()
        self._refuse_shared()
        self._refuse_lengths()
        self._refuse_average()

    def _directions(self) -> list[Direction]:
        """Return the directions; --source-lang and --target-lang may replace the languages of a single one."""
        found = list(dict.fromkeys(map(parse_direction, self.direction)))
        if self.source_lang or self.target_lang:
            if len(found) > 1:
                raise Refused("--source-lang and --target-lang are of one direction: leave them out, or --direction")
            source, target = (found[0].source, found[0].target) if found else ("", "")
            found = [checked(Direction(self.source_lang or source, self.target_lang or target))]
        if not found:
            raise Refused("--direction is empty: SOURCE-TARGET, en-de say")
        for one in found:
            if self.corpus == WMT18 and one.pair not in ({"de", "en"}, {"cs", "en"}):
                raise Refused(f"{WMT18} is de-en and cs-en, both ways, not {one.label}: give a FOLDER")
        return found

    @property
    def variants(self) -> list[Variant]:
        """Return the models of a direction, grouped by seed."""
        seeds = list(dict.fromkeys(self.seeds)) or [self.seed]
        return [Variant(encoding, seed, self.seed) for seed in seeds for encoding in self.encodings]

    @property
    def sets(self) -> dict[str, str]:
        """Return the base name of the files of each split."""
        if self.corpus in (BUILTIN, WMT18):
            return dict(zip(SPLITS, SPLITS, strict=True))
        made = (Path(self.corpus) / MADE).is_file()
        return {"train": self.train_set, "valid": self.valid_set or ("valid" if made else "val"), "test": self.test_set}

    @property
    def longest_training(self) -> int:
        """Return the maximum number of pieces of a training sentence.

        With --train-longest-words, the model's positions limit it, because the model is tested on longer sentences.
        """
        if not self.train_longest_words:
            return self.longest
        return min(self.longest, *(self.room(side) - 1 for side in ("source", "target")))

    def room(self, side: str) -> int:
        """Return the number of positions of the `source` or `target`."""
        return self.number(f"max-{side}-positions", MAX_POSITIONS)

    @property
    def length_bounds(self) -> list[int]:
        """Return the upper bounds of the source lengths by which the test set is scored; empty: it is not."""
        longest = self.train_longest_words
        steps = self.lengths or [longest * 5 // 4, longest * 3 // 2, longest * 2]
        return sorted({*steps, longest} - {0})

    def unused(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.corpus != WMT18:
            found["raw"] = f"nothing is fetched for --corpus {self.corpus}"
        if self.subwords == "fastbpe":
            found |= dict.fromkeys(("model_type", "character_coverage"), "it is SentencePiece's, not fastBPE's")
        return found

    def _refuse_sets(self) -> None:
        if self.newstest and self.corpus != WMT18:
            raise Refused(f"--newstest is for --corpus {WMT18}: a FOLDER has its test set, --test-set")
        if self.corpus in (BUILTIN, WMT18):
            for one in fields(Settings):
                if one.name.endswith("_set") and getattr(self, one.name) != one.default:
                    raise Refused(f"--{one.name.replace('_', '-')} is for a FOLDER: {self.corpus} has its own sets")

    def _refuse_shared(self) -> None:
        """Refuse shared embeddings of separate dictionaries; fairseq would refuse them after preparing the text."""
        if self.separate and self.train.get("share-all-embeddings"):
            raise Refused(
                "--separate gives each language its own dictionary: --train.share-all-embeddings false, and "
                "--train.share-decoder-input-output-embed true to tie the decoder's"
            )

    def _refuse_lengths(self) -> None:
        self.number("max-tokens", 0)
        for side in ("source", "target"):
            room = self.room(side)
            if self.longest >= room and not self.train_longest_words:
                raise Refused(
                    f"--longest {self.longest} and the end of the sentence do not fit into {room} positions: "
                    f"--train.max-{side}-positions {self.longest + 1}, or a smaller --longest"
                )
        if any(bound < 1 for bound in self.lengths):
            raise Refused(f"--lengths is {','.join(map(str, self.lengths))}: numbers of words from 1 on are wanted")

    def _refuse_average(self) -> None:
        """Refuse to average more checkpoints than the training writes; otherwise this fails only after the training."""
        if "save-interval-updates" in self.train:
            every = self.number("save-interval-updates", 1)
            if every < 1:
                raise Refused(f"--train.save-interval-updates is {every}: 1 or more is wanted; leave it out for epochs")
            made = self.number("max-update", 0) // every
        else:
            ends = [self.number(f"max-{unit}", 0) for unit in ("epoch", "update")]  # an epoch has at least one update
            made = min(filter(None, ends), default=0)
        if 0 < made < self.average:
            raise Refused(f"--average {self.average}: the training makes {made} checkpoints")

"""Define the settings of the pretraining recipe; conf/ has the values and their sources."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from recipes.lib import launch, places
from recipes.lib.encodings import parse_all
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

CONF = Path(__file__).parent / "conf"
BUILTIN = "builtin"
NAMED = ("books_wiki", "openwebtext", "c4_en", "wiki100")
PUBLISHED = "published"
MACHINES = {"slurm-partition", "slurm-time", "slurm-arg", "memory"}
PART = 10 << 20  # bytes of text for each part; less is prepared in seconds, and may be a single document
SPLITS = ("train.", "valid.")  # prefixes of the files in a FOLDER
RECORD = "corpus.json"  # the record in a folder that prepare_corpus.py wrote

# Flags that the plan writes itself, with the option to use instead, or the value or reason.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch")},
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    "tokens-per-sample": "--length",
    "max-positions": "--positions",
    **dict.fromkeys(("mask-whole-words", "subwords", "gpt2-encoder-json"), "--masking"),
    **dict.fromkeys(("sample-break-mode", "shorten-method"), "sequences consist of full sentences"),
    "finetune-from-model": "--init-from",
    **dict.fromkeys(("max-tokens", "max-sentences"), "--train.batch-size, which counts sequences"),
    "criterion": "masked_lm",
    "task": "posenc_masked_lm",
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    corpus: str = field(
        metadata=about(
            f"Text: {', '.join(NAMED)} (join several with +), {BUILTIN} (a small invented text), a FOLDER with "
            "train.* and valid.*, or a folder that prepare_corpus.py wrote."
        )
    )
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    books: str = field(default="", metadata=about("For --corpus books_wiki: folder with one file per book."))
    languages: str = field(
        default="", metadata=about("For --corpus wiki100: folder that contains a folder of text for each language.")
    )
    documents: Literal["auto", "text", "jsonl", "wiki", "wikitext", "file"] = field(
        default="auto",
        metadata=about("Format of the files in the --corpus DIR; auto detects it from their first line."),
    )
    limit: int = launch.at_least(0, "Maximum number of training documents (0: all).", default=0)
    valid_part: float = field(
        default=0.005, metadata=about("Fraction of the documents of a published corpus to hold out for validation.")
    )
    tokenizer: Literal["gpt2", "wordpiece", "sentencepiece"] = field(
        default="sentencepiece", metadata=about("Subword tokenizer.")
    )
    tokenizer_path: str = field(
        default="",
        metadata=about(
            "Files of the tokenizer: for gpt2 a folder with encoder.json, vocab.bpe and dict.txt, for wordpiece a "
            f"vocab.txt, for sentencepiece a .model file. `{PUBLISHED}` downloads the tokenizer of GPT-2 or of uncased "
            "BERT. If the option is not given, the tokenizer gpt2 is downloaded, and any other tokenizer is learned "
            "from the text. With --init-from and wordpiece, the default is the vocab.txt of the pretrained model."
        ),
    )
    cased: bool = field(default=False, metadata=about("Keep capitals and accents (for --tokenizer wordpiece)."))
    vocabulary: int = launch.at_least(1, "Number of subword types to learn, if the tokenizer is learned.")
    smoothing: float = field(
        default=0.7,
        metadata=about("For --corpus wiki100: exponent that smooths the languages' frequencies (1: do not smooth)."),
    )
    tasks: int = launch.at_least(
        1, "Number of parts in which the text is prepared; each part becomes a shard.", default=1
    )
    workers: int = launch.at_least(1, "Number of parts to prepare at the same time.", default=1)
    executor: Literal["local", "slurm", "ray"] = field(
        default="local", metadata=about("Where to prepare the text: on this machine, with Slurm or with Ray.")
    )
    length: int = launch.at_least(8, "Maximum number of tokens of a sequence, including <s> and </s>.")
    positions: int = launch.at_least(
        0, "Number of positions of the model, at least --length (0: the same number as --length).", default=0
    )
    masking: Literal["dynamic", "whole-word"] = field(
        metadata=about("Mask single pieces (dynamic) or whole words. New masks are drawn in each epoch.")
    )
    arch: str = field(metadata=about("Architecture, such as posenc_roberta_base or posenc_bert_base."))
    pos_enc: list[str] = field(metadata=about("Position encodings to compare: NAME or NAME[OPTION=VALUE,...]."))
    init_from: str = field(
        default="",
        metadata=about("Pretrained BERT or RoBERTa to start from: a Hugging Face folder or a fairseq checkpoint."),
    )
    init_model: str = field(
        default="",
        metadata=about(
            "Name of the pretrained model from which the preset starts. If a preset names a model, --init-from is "
            "required, but the recipe does not check that --init-from is this model."
        ),
    )
    train: Flags = field(metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))
    prepare: Flags = field(
        default_factory=dict,
        metadata=about("Flag of prepare_corpus.py: slurm-partition, slurm-time, slurm-arg or memory."),
    )

    batch_option = "--train.batch-size"
    fewer_tasks = ""  # what the user must know if --tasks was lowered
    missing = ""  # what the user must name before the first stage; --list and --dry-run show a placeholder instead

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        if self.positions and self.positions < self.length:
            problem = f"sequences of --length {self.length} need {self.length} positions"
            raise Refused(f"--positions {self.positions}: {problem}. Give --positions {self.length} or more, or 0.")
        self.positions = self.positions or self.length
        only_machines = f"only {', '.join(sorted(MACHINES))} are allowed"
        launch.refuse_decided(set(self.prepare) - MACHINES, dict.fromkeys(self.prepare, only_machines), "prepare")
        if not 0 < self.valid_part < 1:
            raise Refused(f"--valid-part {self.valid_part}: the value must be greater than 0 and less than 1.")
        if not 0 <= self.smoothing <= 1:
            raise Refused(f"--smoothing {self.smoothing}: the value must be from 0 to 1.")
        self._refuse_corpus()
        self._lower_tasks()
        self._refuse_start()
        self._refuse_tokenizer()
        self._refuse_schedule()
        if self.prepared:
            self._refuse_prepared()
        self._refuse_without_effect()

    def refuse_missing(self) -> None:
        if self.missing:
            raise Refused(self.missing)
        for option in ("books", "languages", "init_from"):
            places.refuse_missing(option.replace("_", "-"), getattr(self, option))
        if not self.fetched_tokenizer:
            places.refuse_missing("tokenizer-path", self.tokenizer_path)

    @property
    def named(self) -> tuple[str, ...]:
        """Return the names of the published corpora in --corpus; the list is empty if --corpus is a folder."""
        names = tuple(self.corpus.split("+"))
        return names if set(names) <= set(NAMED) else ()

    @property
    def like_m4m(self) -> bool:
        """Return whether the run has the whole text and the model of the M4M paper's small experiment."""
        own = (self.corpus, self.limit, self.arch, self.init_from)
        return own == ("books_wiki", 0, "posenc_roberta_base", "")

    @property
    def own(self) -> bool:
        """Return whether the corpus is a folder of the user."""
        return not self.named and self.corpus != BUILTIN

    @property
    def prepared(self) -> bool:
        """Return whether the corpus is a folder that prepare_corpus.py wrote."""
        return self.own and (Path(self.corpus) / RECORD).is_file()

    @property
    def fetched_tokenizer(self) -> bool:
        """Return whether fetch.py downloads the tokenizer."""
        return self.tokenizer_path == PUBLISHED or (self.tokenizer == "gpt2" and not self.tokenizer_path)

    def _lower_tasks(self) -> None:
        """Lower --tasks for a short text of the user, because every shard needs a document."""
        if not self.own or self.prepared:
            return
        size = sum(path.stat().st_size for path in Path(self.corpus).iterdir() if path.name.startswith(SPLITS[0]))
        most = max(1, size // PART)
        if self.tasks > most:
            short = f"{self.corpus} has {size / 2**20:.1f} MiB of training text"
            self.fewer_tasks = (
                f"--tasks {self.tasks} is lowered to {most}, because {short} and a part needs at least 10 MiB."
            )
            self.tasks = most

    def _refuse_start(self) -> None:
        """Find out whether --init-from is missing, and find the tokenizer of the pretrained model.

        Without --init-from, a preset that names a model would train from scratch with an unsuitable schedule.

        Raises:
            Refused: --init-from is missing although the preset needs it, or the model's tokenizer is unknown.
        """
        if self.init_model and not self.init_from:
            problem = f"this preset starts from the model {self.init_model}"
            self._need(
                "init_from",
                f"--init-from is missing: {problem}. Give the folder or the checkpoint of this model with "
                "--init-from PATH.",
            )
        if not self.init_from or self.tokenizer_path or self.tokenizer == "gpt2" or self.prepared:
            return
        own = Path(self.init_from) / "vocab.txt"
        if Path(self.init_from).exists() and (self.tokenizer != "wordpiece" or not own.is_file()):
            raise Refused(
                f"--init-from {self.init_from}: the text must be tokenized with the tokenizer of this model. Give the "
                "tokenizer with --tokenizer and --tokenizer-path."
            )
        self.tokenizer_path = str(own)

    def _need(self, option: str, problem: str) -> None:
        """Replace a missing path by a placeholder, and keep the problem as the error message of `refuse_missing`."""
        self.missing = self.missing or problem
        setattr(self, option, str(places.OWN_FILES / option.replace("_", "-")))

    def _refuse_schedule(self) -> None:
        """Refuse a linear decay without a last update, because fairseq would soon set the learning rate to 0."""
        train = self.train
        if train.get("lr-scheduler") == "polynomial_decay" and not {"max-update", "total-num-update"} & set(train):
            problem = "this schedule needs the number of updates"
            raise Refused(f"--train.lr-scheduler polynomial_decay: {problem}. Give --train.max-update N.")

    def _refuse_prepared(self) -> None:
        """Refuse a tokenizer or a sequence length that does not fit the prepared corpus."""
        options = json.loads((Path(self.corpus) / RECORD).read_text(encoding="utf-8"))["options"]
        if (tokenizer := options["tokenizer"]) != self.tokenizer:
            raise Refused(
                f"--tokenizer {self.tokenizer}: {self.corpus} was prepared with the tokenizer {tokenizer}. Give "
                f"--tokenizer {tokenizer}, or prepare the text again."
            )
        if (longest := options["longest"]) > self.length - 2:
            raise Refused(
                f"--length {self.length}: sentences in {self.corpus} may have {longest} pieces plus <s> and </s>. "
                f"Give --length {longest + 2} or more, or prepare the text again."
            )

    def _refuse_without_effect(self) -> None:
        """Refuse settings that differ from their defaults but have no effect on this corpus."""
        fetched, c4 = bool(self.named), self.named == ("c4_en",)
        useless = {
            "valid_part": "the corpus already has a validation text" if not fetched or c4 else "",
            "smoothing": "" if self.languages else "the setting applies only to --corpus wiki100",
            "raw": "" if fetched or self.fetched_tokenizer else "nothing is downloaded",
            "documents": "" if self.own and not self.prepared else "the setting applies only to a --corpus DIR of text",
            "limit": "the corpus is already prepared" if self.prepared else "",
        }
        for setting in fields(Settings):
            reason = useless.get(setting.name)
            if reason and getattr(self, setting.name) != setting.default:
                raise Refused(f"--{setting.name.replace('_', '-')} has no effect: {reason}. Leave it out.")

    def _refuse_tokenizer(self) -> None:
        if self.cased and self.tokenizer != "wordpiece":
            raise Refused(f"--cased has no effect: --tokenizer {self.tokenizer} always keeps capitals. Leave it out.")
        if self.tokenizer_path == PUBLISHED and self.tokenizer == "sentencepiece":
            problem = "there is no published SentencePiece model"
            raise Refused(f"--tokenizer-path {PUBLISHED}: {problem}. Leave the option out to learn a model.")

    def _refuse_corpus(self) -> None:
        where = f"--corpus {self.corpus}"
        for option, corpus in (("books", "books_wiki"), ("languages", "wiki100")):
            path = getattr(self, option)
            if path and corpus not in self.named:
                raise Refused(f"--{option} has no effect: only --corpus {corpus} needs this folder. Leave it out.")
            if corpus in self.named and not path:
                self._need(option, f"{where}: this corpus needs --{option} FOLDER. {FOLDERS[option]}")
        if "wiki100" in self.named and len(self.named) > 1:
            raise Refused(f"{where}: wiki100 cannot be joined with other corpora. Give --corpus wiki100.")
        if self.own and not Path(self.corpus).is_dir():
            raise Refused(f"{where}: the folder does not exist. Known corpora are {', '.join((*NAMED, BUILTIN))}.")
        if self.own and not self.prepared:
            for split in SPLITS:
                if not any(path.name.startswith(split) for path in Path(self.corpus).iterdir()):
                    raise Refused(
                        f"{where}: the folder has no file {split}*. The folder must contain train.* and valid.*."
                    )


FOLDERS = {
    "books": "BooksCorpus is no longer distributed, so give any folder with one file per book.",
    "languages": "The folder must contain a subfolder per language (en, de, ...) with Wikipedia's text or dump.",
}

"""Settings of the pretraining recipe; conf/ has the values and their sources."""

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
SPLITS = ("train.", "valid.")  # prefixes of the files in a FOLDER
MADE = "corpus.json"  # the record in a folder that prepare_corpus.py wrote

# Flags that the plan writes itself, and the setting that controls each of them.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "arch")},
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("tokens-per-sample", "max-positions"), "--length"),
    **dict.fromkeys(("mask-whole-words", "subwords", "gpt2-encoder-json"), "--masking"),
    **dict.fromkeys(("sample-break-mode", "shorten-method"), "full sentences"),
    "finetune-from-model": "--init-from",
    **dict.fromkeys(("max-tokens", "max-sentences"), "--train.batch-size, in sequences"),
    "criterion": "masked_lm",
    "task": "posenc_masked_lm",
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    corpus: str = field(
        metadata=about(
            f"Text: {', '.join(NAMED)} (join several by +), {BUILTIN} (small, invented), a FOLDER with"
            " train.* and valid.*, or a folder that prepare_corpus.py wrote."
        )
    )
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    books: str = field(default="", metadata=about("For books_wiki: folder of books with one file per book."))
    languages: str = field(default="", metadata=about("For wiki100: folder with one folder of text per language."))
    documents: Literal["auto", "text", "jsonl", "wiki", "wikitext", "file"] = field(
        default="auto", metadata=about("Format of the files in a FOLDER; auto decides by their first line.")
    )
    limit: int = launch.at_least(0, "Maximum number of training documents (0: all).", default=0)
    valid_part: float = field(
        default=0.005, metadata=about("Fraction of the documents of named corpora that is held out for validation.")
    )
    tokenizer: Literal["gpt2", "wordpiece", "sentencepiece"] = "sentencepiece"
    tokenizer_path: str = field(
        default="",
        metadata=about(
            "Tokenizer files: for gpt2 a folder with encoder.json, vocab.bpe and dict.txt; for "
            f"wordpiece a vocab.txt; for sentencepiece a .model. {PUBLISHED} downloads GPT-2's or "
            f"uncased BERT's. Unset: learned from the text (gpt2: {PUBLISHED})."
        ),
    )
    cased: bool = field(default=False, metadata=about("Let WordPiece keep capitals and accents."))
    vocabulary: int = launch.at_least(1, "Number of subword types to learn, if the tokenizer is learned.")
    smoothing: float = field(
        default=0.7, metadata=about("For wiki100: exponent that smooths the shares of the languages.")
    )
    tasks: int = launch.at_least(
        1, "Number of parts in which the text is prepared, which is also the number of shards.", default=1
    )
    workers: int = launch.at_least(1, "Number of parts that are prepared at the same time.", default=1)
    executor: Literal["local", "slurm", "ray"] = field(
        default="local", metadata=about("Executor that prepares the text.")
    )
    length: int = launch.at_least(8, "Maximum number of tokens of a sequence, including <s> and </s>.")
    masking: Literal["dynamic", "whole-word"] = field(
        metadata=about("What is masked, differently in each epoch: pieces or whole words.")
    )
    arch: str = field(metadata=about("A posenc_roberta or posenc_bert architecture."))
    pos_enc: list[str] = field(metadata=about("Position encodings to compare: NAME or NAME[OPTION=VALUE,...]."))
    init_from: str = field(
        default="", metadata=about("BERT or RoBERTa to start from: a Hugging Face folder or a fairseq checkpoint.")
    )
    goes_on_from: str = field(default="", metadata=about("Model that --init-from has to name, for a warm start."))
    train: Flags = field(metadata=about("A flag of fairseq-train."))
    prepare: Flags = field(
        default_factory=dict,
        metadata=about("A flag of prepare_corpus.py about machines, such as slurm-partition or memory."),
    )

    batch_flag = "batch-size"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        launch.refuse_decided(set(self.prepare) - MACHINES, dict.fromkeys(self.prepare, "a setting"), "prepare")
        if not 0 < self.valid_part < 1:
            raise Refused(f"--valid-part is {self.valid_part}: more than 0, less than 1 is wanted")
        if not 0 <= self.smoothing <= 1:
            raise Refused(f"--smoothing is {self.smoothing}: 0 to 1 is wanted")
        self._refuse_corpus()
        self._refuse_start()
        self._refuse_tokenizer()
        self._refuse_schedule()
        if self.prepared:
            self._refuse_prepared()
        self._refuse_without_effect()

    def refuse_missing(self) -> None:
        for option in ("books", "languages"):
            places.refuse_missing(option, getattr(self, option))

    @property
    def named(self) -> tuple[str, ...]:
        """Return the names of published corpora in --corpus; none if it is a folder."""
        names = tuple(self.corpus.split("+"))
        return names if set(names) <= set(NAMED) else ()

    @property
    def own(self) -> bool:
        """Return whether the corpus is a folder of the user."""
        return not self.named and self.corpus != BUILTIN

    @property
    def prepared(self) -> bool:
        """Return whether the corpus is a folder that prepare_corpus.py wrote."""
        return self.own and (Path(self.corpus) / MADE).is_file()

    @property
    def fetched_tokenizer(self) -> bool:
        """Return whether fetch.py downloads the tokenizer."""
        return self.tokenizer_path == PUBLISHED or (self.tokenizer == "gpt2" and not self.tokenizer_path)

    def _refuse_start(self) -> None:
        """Refuse a warm start without --init-from, and find the tokenizer of the model.

        Without its model, the preset would train from scratch with an unsuitable schedule.

        Raises:
            Refused: The preset needs --init-from, or the tokenizer of the model is not given.
        """
        places.refuse_missing("init-from", self.init_from)
        if self.goes_on_from and not self.init_from:
            raise Refused(f"this preset goes on from {self.goes_on_from}: --init-from names its folder or checkpoint")
        if not self.init_from or self.tokenizer_path or self.tokenizer == "gpt2" or self.prepared:
            return
        own = Path(self.init_from) / "vocab.txt"
        if self.tokenizer != "wordpiece" or not own.is_file():
            raise Refused(
                f"--init-from {self.init_from} has a vocabulary, a learned one would be another: give its tokenizer "
                "with --tokenizer and --tokenizer-path"
            )
        self.tokenizer_path = str(own)

    def _refuse_schedule(self) -> None:
        """Refuse a linear decay without an end: after fairseq's default end the learning rate would be 0."""
        train = self.train
        if train.get("lr-scheduler") == "polynomial_decay" and not {"max-update", "total-num-update"} & set(train):
            raise Refused("--train.lr-scheduler polynomial_decay needs --train.max-update, or --train.total-num-update")

    def _refuse_prepared(self) -> None:
        """Refuse settings that do not fit a prepared corpus: another tokenizer or too short sequences."""
        made = json.loads((Path(self.corpus) / MADE).read_text(encoding="utf-8"))["options"]
        if made["tokenizer"] != self.tokenizer:
            raise Refused(
                f"--tokenizer {self.tokenizer}: {self.corpus} was prepared with {made['tokenizer']}: give that, or "
                "prepare the text anew"
            )
        if made["longest"] > self.length - 2:
            raise Refused(
                f"--length {self.length}: sentences of {self.corpus} have up to {made['longest']} pieces, and <s> and "
                f"</s>: --length {made['longest'] + 2} or more, or prepare the text anew"
            )

    def _refuse_without_effect(self) -> None:
        """Refuse settings that have no effect on this corpus and are not at their default."""
        fetched, c4 = bool(self.named), self.named == ("c4_en",)
        useless = {
            "valid_part": "the validation text is there" if not fetched or c4 else "",
            "smoothing": "" if self.languages else "it is for --corpus wiki100",
            "raw": "" if fetched or self.fetched_tokenizer else "nothing is fetched",
            "documents": "" if self.own and not self.prepared else "it is for a FOLDER of text",
            "limit": "the corpus is prepared" if self.prepared else "",
        }
        for one in fields(Settings):
            why = useless.get(one.name)
            if why and getattr(self, one.name) != one.default:
                raise Refused(f"--{one.name.replace('_', '-')} would have no effect, {why}: leave it out")

    def _refuse_tokenizer(self) -> None:
        if self.cased and self.tokenizer != "wordpiece":
            raise Refused(f"--cased is of WordPiece: {self.tokenizer} keeps capitals as they are")
        if self.tokenizer_path == PUBLISHED and self.tokenizer == "sentencepiece":
            raise Refused("--tokenizer-path published: no model of SentencePiece is: leave it out to learn one")
        if not self.fetched_tokenizer:
            places.refuse_missing("tokenizer-path", self.tokenizer_path)

    def _refuse_corpus(self) -> None:
        wanted = {"books": "books_wiki", "languages": "wiki100"}
        for option, corpus in wanted.items():
            path = getattr(self, option)
            if path and corpus not in self.named:
                raise Refused(f"--{option} is for --corpus {corpus}: leave it out")
            if corpus in self.named and not path:
                raise Refused(f"--corpus {corpus} needs --{option} FOLDER: {WHY[option]}")
        if "wiki100" in self.named and len(self.named) > 1:
            raise Refused("--corpus wiki100 stands alone: its languages are sampled, other corpora are not")
        if self.own and not Path(self.corpus).is_dir():
            raise Refused(f"--corpus {self.corpus}: no such folder; there are: {', '.join((*NAMED, BUILTIN))}")
        if self.own and not self.prepared:
            for split in SPLITS:
                if not any(path.name.startswith(split) for path in Path(self.corpus).iterdir()):
                    raise Refused(f"--corpus {self.corpus}: no file {split}* in it; train.* and valid.* are wanted")


WHY = {
    "books": "BooksCorpus is no longer distributed; any folder of books, a file each, takes its place",
    "languages": "a folder a language (en, de, ...), with Wikipedia's text or dump in it",
}

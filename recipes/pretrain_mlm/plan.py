"""Plan all commands of the recipe in order. Training uses fairseq-train with `--pos-enc` and the plugin's task."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

from recipes.lib import launch, planning
from recipes.lib.encodings import Encoding, labels
from recipes.lib.flags import PLUGIN
from recipes.lib.package import tables
from recipes.lib.planning import LIB, flags, module
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import BUILTIN, RECORD, SPLITS, Settings

HERE = Path(__file__).parent
PREPARE = "data-bin-scripts/prepare_corpus.py"
#: Size in bytes from which a corpus is identified by file names and sizes, because hashing it would take too long.
LARGE = 1 << 31
KEEP = 2  # number of checkpoints to keep besides the last and the best


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


class Planner(planning.Planner[Settings]):
    def plan(self) -> Plan:
        prepare = [self.check(), *self.start.values(), *self.corpus]  # first the checks, which are quick
        prepare += [unigrams := self.unigrams()]
        seeds = self.settings.training_seeds.seeds
        chains = [self.chain(encoding, seed) for encoding in self.settings.encodings for seed in seeds]
        compare = self.compare([unigrams, *(chain[-1] for chain in chains)])
        return Plan([[prepare], chains, [[compare]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        lines = launch.notes(settings, self.effective_batch())
        lines += [settings.fewer_tasks] if settings.fewer_tasks else []
        if settings.corpus == BUILTIN:
            lines.append(
                "The built-in corpus only tests the installation. Scores on this corpus do not show the quality of "
                "encodings."
            )
        if settings.prepared:
            lines.append("The corpus is already prepared, so the settings for its preparation are not used.")
        return lines

    def effective_batch(self) -> str:
        run, batch = self.settings, self.settings.number("batch-size", 1)
        numbers = [*launch.factors(run), f"--train.batch-size {batch}"]
        total = [f"{run.batches * batch:,}"] if len(numbers) > 1 else []
        product = " = ".join([" x ".join(numbers), *total])
        return f"Number of sequences per update ({run.length} tokens per sequence): {product}"

    # --- the text

    def check(self) -> Stage:
        """Return the stage that checks the models and their flags, so that errors appear before hours of training."""
        command = module("lib.check_models") + flags(output=f"{self.shown}/checked.json")
        command += flags(pos_enc=labels(self.settings.encodings))
        command += ["--", *PLUGIN, *self.model_flags(gpt2_encoder=False)]
        return self.stage("check", command, ["checked.json"], inputs=[LIB / "check_models.py"])

    @cached_property
    def corpus(self) -> list[Stage]:
        """Return the stages that produce the shards; the list is empty if --corpus is already prepared."""
        settings = self.settings
        if settings.prepared:
            return []
        before, sources = self.sources()
        before += self.tokenizer(before)
        path, files = self.tokenizer_path, self.files()
        command = ["python", PREPARE, *sources]
        command += flags(output=f"{self.shown}/data", tokenizer=settings.tokenizer, tokenizer_path=path)
        command += flags(vocabulary=None if path else settings.vocabulary, cased=settings.cased)
        command += flags(
            longest=settings.length - 2, limit=settings.limit or None, tasks=settings.tasks
        )  # <s> and </s>
        sizes = [f"{path.name} {path.stat().st_size}" for path in files] if self.large(files) else []
        places = {str(path.parent) for path in files}  # moving the text must not change the stage
        identity = (*(word for word in command if not any(place in word for place in places)), *sizes)
        free = [*flags(workers=settings.workers, executor=settings.executor), *as_arguments(settings.prepare)]
        inputs = [ROOT / PREPARE, *([] if sizes else files)]
        if path and not settings.fetched_tokenizer:
            inputs.append(Path(path))
        stage = self.stage("corpus", command, ["data"], before[-1:], inputs, free=free)
        return [*before, replace(stage, identity=identity)]

    def sources(self) -> tuple[list[Stage], list[str]]:
        """Return the stages that fetch or generate the text, and the options that give it to prepare_corpus.py."""
        settings = self.settings
        if settings.corpus == BUILTIN:
            folder = f"{self.shown}/builtin"
            return [self.builtin()], ["--train", f"{folder}/train.txt", "--valid", f"{folder}/valid.txt"]
        if settings.named:
            return self.published()
        train, valid = ([str(path) for path in self.files() if path.name.startswith(name)] for name in SPLITS)
        return [], ["--train", *train, "--valid", *valid, "--documents", settings.documents]

    def published(self) -> tuple[list[Stage], list[str]]:
        """Return the stages and options of `sources` for published corpora; only C4 has a validation set of its own."""
        settings = self.settings
        before: list[Stage] = []
        for name in settings.named:
            before += [self.fetch(corpus, *more, after=before) for corpus, *more in FETCHED[name]]
        train = [place.format(raw=settings.raw) for name in settings.named for place in PLACES[name]]
        train += [f"file:{Path(settings.books).resolve()}"] if settings.books else []  # each file is a document
        train += [str(Path(settings.languages).resolve())] if settings.languages else []
        held_out = ["--valid-part", str(settings.valid_part)]
        if settings.named == ("c4_en",):
            held_out = ["--valid", f"{settings.raw}/c4/c4-validation.*"]
        if settings.languages:
            held_out += ["--languages", "--smoothing", str(settings.smoothing)]
        return before, ["--train", *train, *held_out]

    def tokenizer(self, before: list[Stage]) -> list[Stage]:
        """Return a list with the stage that fetches a published tokenizer, or an empty list if nothing is fetched."""
        settings = self.settings
        return [self.fetch(TOKENIZERS[settings.tokenizer][0], after=before)] if settings.fetched_tokenizer else []

    @property
    def tokenizer_path(self) -> str:
        """Return the path of the tokenizer, or an empty text if the tokenizer is learned from the corpus."""
        settings = self.settings
        if settings.fetched_tokenizer:
            return f"{settings.raw}/{TOKENIZERS[settings.tokenizer][1]}"
        return str(Path(settings.tokenizer_path).resolve()) if settings.tokenizer_path else ""

    def files(self) -> tuple[Path, ...]:
        """Return the user's text files; downloaded files are left out, because fetch.py checks them."""
        settings = self.settings
        if settings.own:
            folder = Path(settings.corpus).resolve()
            return tuple(sorted(path for path in folder.iterdir() if path.name.startswith(SPLITS)))
        folders = [Path(folder).resolve() for folder in (settings.books, settings.languages) if folder]
        return tuple(sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()))

    def large(self, files: tuple[Path, ...]) -> bool:
        """Return whether the files are too large to be hashed."""
        return sum(path.stat().st_size for path in files) > LARGE

    def builtin(self) -> Stage:
        command = module("pretrain_mlm.builtin") + flags(output=f"{self.shown}/builtin", seed=self.settings.seed)
        inputs = [HERE / "builtin.py", LIB / "invented" / "sentences.py"]
        return self.stage("builtin", command, ["builtin"], inputs=inputs)

    def fetch(self, corpus: str, *more: str, after: list[Stage]) -> Stage:
        """Return a stage that fetches a corpus.

        The stage has no outputs: all runs share the downloads, and fetch.py itself skips existing files.
        """
        command = ["python", "data-bin-scripts/fetch.py", corpus, "--output", self.settings.raw, *more]
        return self.stage(f"fetch-{corpus}", command, [], after[-1:])

    @property
    def data(self) -> str:
        return str(Path(self.settings.corpus).resolve()) if self.settings.prepared else f"{self.shown}/data"

    @property
    def as_prepared(self) -> tuple[Path, ...]:
        """Return the record of a corpus that the user prepared, so that a changed corpus makes stages run again."""
        return (Path(self.data) / RECORD,) if self.settings.prepared else ()

    @property
    def shards(self) -> list[str]:
        """Return the folders of the shards. If the user prepared the corpus, only existing folders are returned."""
        if self.settings.prepared:
            return sorted(str(path) for path in Path(self.data).glob("shard*"))
        return [f"{self.data}/shard{number:05d}" for number in range(self.settings.tasks)]

    def unigrams(self) -> Stage:
        command = module("pretrain_mlm.unigrams")
        command += flags(shard=self.shards[0], output=f"{self.shown}/unigrams.json")
        command += flags(without_specials=self.settings.masking == "whole-word")
        inputs = [HERE / "unigrams.py", *self.as_prepared]
        return self.stage("unigrams", command, ["unigrams.json"], self.corpus[-1:], inputs)

    # --- one model

    def chain(self, encoding: Encoding, seed: int) -> list[Stage]:
        train = self.train(encoding, seed)
        return [train, self.evaluate(train)]

    @cached_property
    def start(self) -> dict[str, Stage]:
        """Return the stages of --init-from: one stage checks the pretrained model, and one per encoding imports it."""
        settings = self.settings
        if not settings.init_from:
            return {}
        source = Path(settings.init_from).resolve()
        command = module("pretrain_mlm.check_source") + flags(source=source, output=f"{self.shown}/source.json")
        command += ["--", *PLUGIN, *self.model_flags(gpt2_encoder=False)]
        check = self.stage("source", command, ["source.json"], inputs=[source, HERE / "check_source.py"])
        return {"": check, **{each.slug: self.imported(each, source, check) for each in settings.encodings}}

    def imported(self, encoding: Encoding, source: Path, check: Stage) -> Stage:
        name = f"imported/{encoding.slug}"
        command = ["python", "-m", "fairseq_posenc", "import-hf", str(source), *encoding.flags()]
        command += flags(max_positions=self.settings.positions, seed=self.settings.seed, output=f"{self.shown}/{name}")
        return self.stage(f"import:{encoding.slug}", command, [name], [check], [source])

    def model_flags(self, *, gpt2_encoder: bool = True) -> list[str]:
        settings = self.settings
        words = flags(task="posenc_masked_lm", criterion="masked_lm", arch=settings.arch)
        words += flags(sample_break_mode="complete", tokens_per_sample=settings.length)
        words += flags(max_positions=settings.positions)
        if settings.masking == "whole-word":
            words += flags(mask_whole_words=True, subwords=settings.tokenizer)
            if settings.tokenizer == "gpt2" and gpt2_encoder:
                words += flags(gpt2_encoder_json=f"{self.data}/tokenizer/encoder.json")
        return [*words, *self.schedule(), *as_arguments(settings.train)]

    def schedule(self) -> list[str]:
        """Return the flag that ends a linear decay at the last update, unless the user sets another end."""
        train = self.settings.train
        linear = train.get("lr-scheduler") == "polynomial_decay" and "max-update" in train
        return ["--total-num-update", str(train["max-update"])] if linear and "total-num-update" not in train else []

    def train(self, encoding: Encoding, seed: int) -> Stage:
        settings, first = self.settings, self.start.get(encoding.slug)
        slug = settings.training_seeds.slug(encoding.slug, seed)
        words = [*self.model_flags(), *encoding.flags(), "--seed", str(seed)]
        words += flags(finetune_from_model=f"{self.shown}/imported/{encoding.slug}/checkpoint.pt" if first else None)
        keep = flags(no_epoch_checkpoints=True, keep_interval_updates=KEEP)
        if settings.on_gpu and settings.precision == "fp16" and settings.train.get("optimizer") == "posenc_lamb":
            keep.append("--fp16-no-flatten-grads")  # LAMB needs each tensor; on CPUs the flag is always set
        after = [*self.corpus[-1:], *([first] if first else [])]
        return self.training_stage(slug, ":".join(self.shards), words, after, self.as_prepared, keep=keep)

    def evaluate(self, train: Stage) -> Stage:
        slug = train.variant
        scores = f"scores/{slug}.json"
        command = module("pretrain_mlm.evaluate")
        command += flags(checkpoint=f"{self.shown}/checkpoints/{slug}/checkpoint_last.pt")
        command += flags(data=self.shards[0], output=f"{self.shown}/{scores}")
        inputs = [HERE / "evaluate.py"]
        return self.stage(f"evaluate:{slug}", command, [scores], [train], inputs, on_device=True)

    # --- all of them

    def compare(self, after: list[Stage]) -> Stage:
        settings = self.settings
        command = module("pretrain_mlm.compare") + flags(output=self.shown, pos_enc=labels(settings.encodings))
        command += [*settings.training_seeds.flags(), *flags(paper=settings.like_m4m)]
        return self.stage(
            "compare", command, ["comparison.json", "curves.png"], after, [HERE / "compare.py", *tables()]
        )


#: The corpora that fetch.py downloads for each value of --corpus, and the resulting folders.
FETCHED = {
    "books_wiki": [["wikipedia", "--no-unpack"]],
    "openwebtext": [["openwebtext"]],
    "c4_en": [["c4", "--no-unpack"]],
    "wiki100": [],
}
PLACES = {
    "books_wiki": ["{raw}/wikipedia"],
    "openwebtext": ["{raw}/openwebtext"],
    "c4_en": ["{raw}/c4/c4-train.*"],
    "wiki100": [],
}
TOKENIZERS = {"gpt2": ("gpt2-bpe", "gpt2-bpe"), "wordpiece": ("bert-vocab", "bert-vocab/bert-base-uncased-vocab.txt")}

"""Plan all commands of the recipe in order.

The models are trained by fairseq-train with `--pos-enc` and the plugin's task.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from recipes.lib import launch, planning
from recipes.lib.encodings import labels
from recipes.lib.flags import ALONE, PLUGIN, QUIET, WHOLE
from recipes.lib.package import tables
from recipes.lib.planning import LIB, PACKAGE, SCRIPTS, flags, module
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from . import sources
from .settings import BUILTIN, RECORD, SCRATCH, Settings, Variant

HERE = Path(__file__).parent
PREPARE = "data-bin-scripts/prepare_questions.py"
TASK = ("--task", "posenc_question_generation")
PIECES = tuple(PACKAGE / "data" / f"{name}.py" for name in ("question_pieces", "byte_pieces"))
SCORING = tuple(sorted((PACKAGE / "metrics").glob("*.py")))
BUFFER = 32  # number of lines that fairseq-interactive reads at once
ROOM = 14  # number of decoder positions beyond --longest-question


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


def scripts(*names: str) -> list[Path]:
    return [HERE / f"{name}.py" for name in names]


class Planner(planning.Planner[Settings]):
    def plan(self) -> Plan:
        settings = self.settings
        chains = [self.chain(variant, seed) for variant in settings.variants for seed in settings.training_seeds.seeds]
        baselines = self.baselines()
        compare = self.compare([baselines, *(stage for chain in chains for stage in (chain[0], chain[-1]))])
        return Plan([[[self.check(), *self.text, baselines]], chains, [[compare]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        batch = settings.number("batch-size", 0)
        lines = launch.notes(settings, f"An update has {batch * settings.batches:,} questions." if batch else "")
        if settings.dataset == BUILTIN:
            lines.append(
                "The built-in questions only test the installation. Scores on these questions do not show the quality "
                "of encodings."
            )
        if settings.limit and not settings.prepared:
            lines.append(f"Only the first {settings.limit:,} training questions are used.")
        if settings.scratch and settings.arch == "posenc_question_generation":
            lines.append(
                f"With --encoder {SCRATCH}, scores are not comparable with the paper, whose encoders are pretrained."
            )
        return lines

    # --- the questions

    def check(self) -> Stage:
        """Return the stage that checks models and decoding flags quickly, without loading a pretrained encoder."""
        command = module("lib.check_models") + flags(output=f"{self.shown}/checked.json")
        command += flags(pos_enc=labels(self.settings.encodings), generate=shlex.join([*TASK, *self.generate_flags()]))
        command += ["--", *PLUGIN, *self.model_flags(pretrained=False)]
        return self.stage("check", command, ["checked.json"], inputs=[LIB / "check_models.py"])

    @cached_property
    def text(self) -> list[Stage]:
        """Return the stages that produce binary data; the list is empty if --dataset is already prepared."""
        if self.settings.prepared:
            return []
        before, words = self.source()
        return [*before, self.prepare(before, words)]

    def source(self) -> tuple[list[Stage], list[str]]:
        """Return the stages that fetch or generate the questions, and the options that name the questions."""
        settings = self.settings
        if settings.dataset == BUILTIN:
            folder = f"{self.shown}/builtin"
            command = module("lib.invented.questions") + flags(output=folder, seed=settings.seed)
            inputs = [LIB / "invented" / "questions.py"]
            return [self.stage("builtin", command, ["builtin"], inputs=inputs)], ["--text", folder]
        named = sources.named(settings)
        if settings.own:
            return [], named
        # The stage has no outputs: all runs share the downloads, and fetch.py itself skips existing files.
        files = sources.FETCHED[settings.dataset].values()
        fetch = ["python", "data-bin-scripts/fetch.py", *files, "--output", settings.raw]
        return [self.stage("fetch", fetch, [])], named

    def prepare(self, before: list[Stage], words: list[str]) -> Stage:
        settings = self.settings
        command = ["python", PREPARE, *words, *flags(output=f"{self.shown}/data-bin", bad=settings.bad)]
        command += flags(longest=settings.longest, longest_question=settings.longest_question)
        if not settings.of_lines:
            command += flags(context=settings.context, longest_answer=settings.longest_answer)
        command += flags(seed=settings.seed if settings.lone else None)
        command += flags(limit=settings.limit or None, limit_valid=settings.limit_valid or None)
        command += self.pieces()
        inputs = [ROOT / PREPARE, *sorted((SCRIPTS / "questions").glob("*.py")), *PIECES]
        inputs += [*sources.files(settings), *sources.encoder_files(settings, sources.PIECES)]
        return self.stage("prepare", command, ["data-bin"], before, inputs, free=flags(workers=settings.workers))

    def pieces(self) -> list[str]:
        settings = self.settings
        if not settings.scratch:
            return flags(tokenizer_path=sources.encoder(settings))
        tokenizer = None if settings.tokenizer == "auto" else settings.tokenizer
        return flags(tokenizer=tokenizer, cased=settings.cased, vocabulary=settings.vocabulary)

    @property
    def data(self) -> str:
        return str(Path(self.settings.dataset).resolve()) if self.settings.prepared else f"{self.shown}/data-bin"

    @property
    def data_inputs(self) -> tuple[Path, ...]:
        """Return a tuple with the file questions.json of --dataset, or an empty tuple if --dataset is not prepared."""
        return (Path(self.data) / RECORD,) if self.settings.prepared else ()

    def baselines(self) -> Stage:
        command = module("question_generation.baselines") + flags(data=self.data, split=self.settings.split)
        command += flags(output=f"{self.shown}/baselines.json")
        inputs = [*scripts("baselines", "score", "data"), *SCORING, *self.data_inputs]
        return self.stage("baselines", command, ["baselines.json"], self.text[-1:], inputs)

    def unplaced(self, command: Iterable[str]) -> tuple[str, ...]:
        return sources.unplaced(self.settings, list(command))

    # --- one model

    def chain(self, variant: Variant, seed: int) -> list[Stage]:
        train = self.train(variant, seed)
        generate = self.generate(train)
        return [train, generate, self.score(generate)]

    def model_flags(self, *, pretrained: bool = True) -> list[str]:
        settings = self.settings
        words = [*TASK, *flags(arch=settings.arch, criterion="question_generation")]
        words += flags(max_target_positions=settings.longest_question + ROOM)
        if settings.scratch or not pretrained:
            words += flags(max_source_positions=settings.longest)
        else:
            words += flags(encoder_from=sources.encoder(settings), freeze_encoder=settings.freeze_encoder)
        return [*words, *as_arguments(settings.train)]

    def train(self, variant: Variant, seed: int) -> Stage:
        settings = self.settings
        slug = settings.training_seeds.slug(variant.slug, seed)
        words = [*self.model_flags(), *variant.encoding.flags(), *flags(no_copy=not variant.copy, seed=seed)]
        keep = flags(no_epoch_checkpoints=True, keep_interval_updates=1)
        inputs = [*self.data_inputs, *sources.encoder_files(settings)]
        return self.training_stage(slug, self.data, words, self.text[-1:], inputs, keep=keep)

    def decoding(self, slug: str) -> list[str]:
        """Return the flags shared by fairseq-generate and fairseq-interactive; `slug` names the training run."""
        settings, path = self.settings, f"{self.shown}/checkpoints/{slug}/checkpoint_best.pt"
        command = [self.data, *PLUGIN, *TASK, "--path", path, "--max-source-positions", str(settings.longest)]
        command += ["--max-target-positions", str(settings.longest_question + ROOM)]
        return [*command, *self.generate_flags()]

    def generate_flags(self) -> list[str]:
        """Return the flags for decoding. The user's flags come last, so they override the recipe's flags."""
        return ["--max-len-b", str(self.settings.longest_question), *as_arguments(self.settings.generate)]

    def generate(self, train: Stage) -> Stage:
        folder = f"generated/{train.variant}"
        command = ["fairseq-generate", *WHOLE, *QUIET, *ALONE, "--scoring", "rouge_l", *self.decoding(train.variant)]
        command += flags(gen_subset=self.settings.split, results_path=f"{self.shown}/{folder}")
        return self.stage(f"generate:{train.variant}", command, [folder], [train], on_device=True)

    def interactive(self, slug: str) -> str:
        """Return the command that generates questions from lines of text: `answer </s> context`, or a sentence."""
        cpu = [] if self.settings.on_gpu else ["--cpu"]
        batch = self.settings.generate.get("batch-size", BUFFER)  # fairseq requires a buffer of this size or larger
        command = ["fairseq-interactive", *ALONE, *self.decoding(slug), "--buffer-size", str(batch), *cpu]
        return f"{shlex.join(command)} < FILE | grep ^D- | cut -f 3"

    def score(self, generate: Stage) -> Stage:
        split, slug = self.settings.split, generate.variant
        questions, scores = f"questions/{slug}.txt", f"scores/{slug}.json"
        command = module("question_generation.score") + flags(data=self.data, split=split)
        command += flags(generated=f"{self.shown}/generated/{slug}/generate-{split}.txt")
        command += flags(questions=f"{self.shown}/{questions}", output=f"{self.shown}/{scores}")
        inputs = [*scripts("score", "data"), *SCORING, *PIECES]
        return self.stage(f"score:{slug}", command, [questions, scores], [generate], inputs)

    # --- all of them

    def compare(self, after: list[Stage]) -> Stage:
        settings = self.settings
        command = module("question_generation.compare") + flags(output=self.shown, data=self.data)
        command += flags(split=settings.split, copy=settings.copy, pos_enc=labels(settings.encodings))
        command += settings.training_seeds.flags()
        inputs = [*scripts("compare", "data"), *self.data_inputs, *tables()]
        outputs = ["comparison.json", "curves.png", "gallery.md"]
        return self.stage("compare", command, outputs, after, inputs)

"""Define `posenc_question_generation`: generate questions from prepared sources, and copy words from them."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import logging
from argparse import Namespace
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.logging import metrics
from fairseq.tasks import register_task
from omegaconf import II
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..core.extras import extra
from ..core.options import option
from ..core.refusal import InputError
from ..data import questions
from ..data.copied_words import CopyDictionary
from ..data.question_lines import QuestionLines
from ..data.question_text import QuestionText
from ..generation.options import SearchConfig, Searching, refuse_in_training
from ..generation.rouge_scorer import Expected, expect
from ..generation.search import CopyingGenerator, CopyingGnmtGenerator
from ..models.copying import known
from ..models.pretrained_encoder import load_encoder, pretrained_encoder, take_sizes
from ..models.question_generation import PosEncQuestionGeneration

logger = logging.getLogger(__name__)

#: penalty in nats that no score can outweigh
NEVER = 1e4


@dataclasses.dataclass
class QuestionGenerationTaskConfig(SearchConfig):
    """Hold the options for the prepared questions, their batches and the search."""

    data: Optional[str] = option(
        None, "Folder that prepare_questions.py wrote (SPLIT.src-tgt.*, SPLIT.surface.jsonl, dict.src.txt)."
    )
    right_pad_source: bool = option(False, "Pad sources on the right. Default: on the left.")
    max_source_positions: int = option(512, "Longest source in tokens.")
    # The LFHC/GCDF paper's questions have at most 50 pieces; 64 leaves room for </s> and longer questions.
    max_target_positions: int = option(
        64, "Longest question in tokens; a table of learned positions has this number of rows."
    )
    eval_rouge: bool = option(
        False,
        "Generate questions in validation, greedily and without <unk>, and log their ROUGE-L as rouge_l "
        "(for --best-checkpoint-metric).",
    )
    dataset_impl: Optional[str] = II("dataset.dataset_impl")
    train_subset: str = II("dataset.train_subset")
    skip_invalid_size_inputs_valid_test: bool = II("dataset.skip_invalid_size_inputs_valid_test")


@register_task("posenc_question_generation", dataclass=QuestionGenerationTaskConfig)
class QuestionGenerationTask(Searching):
    """Generate questions from sources `<s> answer </s> context </s>` or `<s> sentence </s>`.

    In a sample, V + k is the id of the sample's k-th unknown word (V: size of the dictionary).
    """

    #: This task reads --encoder-from; a checkpoint stores the encoder's sizes, so that loading it does not read it
    #: again.
    starts_encoders = True
    source_dictionary = target_dictionary = property(attrgetter("dictionary"))

    def __init__(self, cfg: QuestionGenerationTaskConfig, dictionary: CopyDictionary) -> None:
        super().__init__(cfg)
        self.dictionary = dictionary
        #: V, which is fixed here because fairseq may add words to a dictionary while it generates
        self.size = len(dictionary)
        self.copies = True
        self.spelled = QuestionText(_folder(cfg.data))
        self.lines = QuestionLines(_folder(cfg.data), self.spelled.answers, dictionary)
        #: longest source and longest question that both the task and its models allow
        self.longest = self.max_positions()
        self._greedy: Any = None

    @classmethod
    def setup_task(cls, cfg: QuestionGenerationTaskConfig, **unused: Any) -> "QuestionGenerationTask":
        """Set the task up with the dictionary of the data.

        Raises:
            ValueError: Sources and questions have different dictionaries.
        """
        source, target = (_folder(cfg.data) / f"dict.{side}.txt" for side in (questions.SOURCE, questions.TARGET))
        dictionary = CopyDictionary.load(str(source))
        if target.is_file() and CopyDictionary.load(str(target)).symbols != dictionary.symbols:
            raise InputError(f"{source} and {target} differ, but copying needs one vocabulary. Prepare the data again.")
        logger.info("dictionary: %d types", len(dictionary))
        return cls(cfg, dictionary)

    def max_positions(self) -> tuple[int, int]:
        """Return the maximum length of a source and of a question."""
        return self.cfg.max_source_positions, self.cfg.max_target_positions

    # -- model and loss --------------------------------------------------------------------------------

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, and with --encoder-from load the pretrained encoder into it.

        Raises:
            ValueError: The architecture is not for this task, or options have no effect.
            CheckpointError: The pretrained encoder cannot be used.
        """
        source = None if from_checkpoint else getattr(cfg, "encoder_from", None)
        if not from_checkpoint:
            refuse_in_training(self.cfg)
        if source:
            pretrained = pretrained_encoder(Path(source), self.dictionary, _folder(self.cfg.data) / "dict.src.txt")
            take_sizes(cfg, pretrained)
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, PosEncQuestionGeneration):
            raise InputError(
                f"--task posenc_question_generation does not support {type(model).__name__}. Give --arch "
                "posenc_question_generation or one of its presets."
            )
        if source:
            load_encoder(model.encoder, pretrained)
        self.copies = model.copies
        self.longest = utils.resolve_max_positions(self.longest, model.max_positions())
        if self.cfg.eval_rouge:
            extra("rapidfuzz", "--eval-rouge")  # raise before training, not after its first epoch
            # The search makes one more step for </s>. The penalty keeps it from generating <unk>.
            options = Namespace(beam=1, max_len_a=0, max_len_b=self.cfg.max_target_positions - 1, unkpen=NEVER)
            self._greedy = self.build_generator([model], options)
        return model

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build fairseq's criterion.

        Raises:
            ValueError: Label smoothing is set for a model that copies.
        """
        if self.copies and getattr(cfg, "label_smoothing", None):
            raise InputError(
                "--label-smoothing needs a probability for every word, but unknown words that are not in the "
                "source have probability 0. Use --criterion question_generation or cross_entropy, or give "
                "--copy-mechanism none."
            )
        return super().build_criterion(cfg, from_checkpoint)

    # -- data ------------------------------------------------------------------------------------------

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **unused: Any) -> None:
        """Load a split; see `questions.load` and `questions.check_lengths` for the errors that it raises."""
        options = {"left_pad_source": not self.cfg.right_pad_source, "shuffle": split == self.cfg.train_subset}
        folder = _folder(self.cfg.data)
        data = questions.load(folder, split, self.dictionary, self.cfg.dataset_impl, **options)
        is_skipped = split != self.cfg.train_subset and self.cfg.skip_invalid_size_inputs_valid_test
        questions.check_lengths(data, self.longest, folder, split, skipped=is_skipped)
        self.datasets[split] = data

    def get_interactive_tokens_and_lengths(
        self, lines: Sequence[str], encode_fn: Any
    ) -> tuple[list[Tensor], list[int]]:
        """Return the tokens of each input line, and the number of tokens per line; `QuestionLines` splits the lines."""
        samples = [self.lines.tokens(line, encode_fn, self.longest[0]) for line in lines]
        return samples, [len(tokens) for tokens in samples]

    def build_bpe(self, args: Any) -> Any:
        """Return the BPE of --bpe; by default, return the tokenizer of the prepared questions, so that outputs are
        text.
        """
        return super().build_bpe(args) or self.spelled

    def build_dataset_for_inference(
        self, src_tokens: Any, src_lengths: Any, constraints: Optional[Tensor] = None
    ) -> questions.Questions:
        """Return the data set for lines of fairseq-interactive."""
        return questions.Questions(
            src_tokens,
            None,
            self.dictionary,
            source_sizes=src_lengths,
            left_pad_source=not self.cfg.right_pad_source,
            constraints=constraints,
        )

    # -- generation ------------------------------------------------------------------------------------

    def generator_of(self, args: Any) -> tuple[Any, dict[str, Any]]:
        """Return the class of the search; if the model copies, the search can also output unknown words.

        Raises:
            ValueError: An option cannot handle words that are not in the dictionary.
        """
        for name in ("replace_unk", "print_alignment") + ("lm_path", "constraints") * self.copies:
            if getattr(args, name, None):
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"{flag} does not work with --task posenc_question_generation. Leave {flag} out.")
        if not self.copies:
            return super().generator_of(args)
        return (CopyingGenerator if self.form == "fairseq" else CopyingGnmtGenerator), {}

    def inference_step(
        self, generator: Any, models: Any, sample: Any, prefix_tokens: Any = None, constraints: Any = None
    ) -> Any:
        """Return hypotheses whose ids the dictionary can convert to words, including copied words.

        The function also replaces the ids in `sample` by ids that the dictionary can convert.
        """
        hypotheses = self._spelled(generator, models, sample, prefix_tokens, constraints)
        if "references" in sample:
            sources = zip(hypotheses, sample["references"], sample["weights"], strict=True)
            expect([Expected(references, weight, self.spelled.units) for best, references, weight in sources if best])
        return hypotheses

    def _spelled(self, generator: Any, models: Any, sample: Any, prefix: Any = None, constraints: Any = None) -> Any:
        own = sample if "unknown" in sample else self._of_sample(sample)
        hypotheses = self._generated(generator, models, own, prefix, constraints)
        for best, words in zip(hypotheses, own["unknown"], strict=True):
            for hypothesis in best:
                hypothesis["tokens"] = self.dictionary.permanent_ids(hypothesis["tokens"], words, self.size)
        self._spell(sample, own["unknown"])
        return hypotheses

    def _generated(self, generator: Any, models: Any, sample: Any, prefix: Any = None, constraints: Any = None) -> Any:
        if {model.copies for model in models} != {self.copies}:
            raise InputError(
                "An ensemble cannot mix models that copy with models of --copy-mechanism none. Give models of one kind "
                "only."
            )
        if not self.copies and sample.get("target") is not None:
            sample = {**sample, "target": known(sample["target"], self.size, self.dictionary.unk())}
            prefix = None if prefix is None else known(prefix, self.size, self.dictionary.unk())
        return super().inference_step(generator, models, sample, prefix_tokens=prefix, constraints=constraints)

    def _of_sample(self, sample: Any) -> Any:
        """Copy a sample of fairseq-interactive, give its unknown words ids from V on, and list them in `unknown`."""
        source, words = self.dictionary.sample_ids_in_batch(sample["net_input"]["src_tokens"], self.size)
        return {**sample, "net_input": {**sample["net_input"], "src_tokens": source}, "unknown": words}

    def _spell(self, sample: Any, unknown: Sequence[Sequence[str]]) -> None:
        """Replace ids in sources and targets, which fairseq-generate prints, by ids that the dictionary can convert."""
        for where, name in ((sample["net_input"], "src_tokens"), (sample, "target")):
            if where.get(name) is not None:
                where[name] = self.dictionary.permanent_ids_in_batch(where[name], unknown, self.size)

    # -- validation ------------------------------------------------------------------------------------

    def valid_step(self, sample: Any, model: Any, criterion: Any) -> Any:
        """Validate as fairseq does, and add the ROUGE-L of greedily generated questions as a mean over sources."""
        loss, size, output = super().valid_step(sample, model, criterion)
        if self._greedy is not None:
            scores, weights = self._scores(sample, model), sample["weights"]
            weighted = sum(score * weight for score, weight in zip(scores, weights, strict=True))
            output |= {"rouge_sum": weighted, "rouge_count": sum(weights)}
        return loss, size, output

    def _scores(self, sample: Any, model: Any) -> list[float]:
        copy = {**sample, "net_input": dict(sample["net_input"])}  # `_spelled` changes the sample in place
        generated = self._spelled(self._greedy, [model], copy)
        scores = []
        for hypotheses, target, references in zip(generated, copy["target"], copy["references"], strict=True):
            text, target_text = (self.text(tokens) for tokens in (hypotheses[0]["tokens"], target))
            scores.append(self.spelled.rouge_l(text, references or [target_text]))
        return scores

    def text(self, tokens: Tensor) -> str:
        """Return the text of a question in the form that is compared with the references."""
        return self.spelled.decode(self.dictionary.string(utils.strip_pad(tokens, self.dictionary.pad())))

    def reduce_metrics(self, logging_outputs: Any, criterion: Any) -> None:
        """Log the values that fairseq logs, and `rouge_l`."""
        super().reduce_metrics(logging_outputs, criterion)
        count = sum(output.get("rouge_count", 0) for output in logging_outputs)
        if count:
            total = sum(output.get("rouge_sum", 0) for output in logging_outputs)
            metrics.log_scalar("rouge_l", total / count, count, round=4)


def _folder(data: Optional[str]) -> Path:
    if not data or not Path(data).is_dir():
        raise CheckpointError(f"{data} is not a folder. Give a folder that prepare_questions.py wrote.")
    return Path(data)

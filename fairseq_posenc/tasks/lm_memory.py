"""Define `posenc_lm_memory`: language modelling of contiguous text, with a memory of earlier segments."""

import logging
from operator import attrgetter
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.tasks import FairseqTask, register_task

from ..attention.memory import SegmentMemory
from ..core.refusal import InputError
from ..data.streams import Corpus, Segments, StreamIterator
from . import lm_checks, lm_scores, lm_states
from .lm_memory_config import MEMORY, SEGMENT, LMMemoryConfig, check

logger = logging.getLogger(__name__)

#: default of fairseq-eval-lm for --max-tokens
EVAL_LM_TOKENS = 36000


@register_task("posenc_lm_memory", dataclass=LMMemoryConfig)
class LMMemoryTask(FairseqTask):
    """Train and evaluate language models on streams of text; each worker reads --batch-size streams.

    A batch consists of the next segment of every stream. Models get a `SegmentMemory` with each batch. The task has one
    memory for training, which checkpoints store, and another one for evaluation. Each memory is emptied before the
    first segment of the streams.
    """

    source_dictionary = target_dictionary = property(attrgetter("dictionary"))
    training: SegmentMemory
    evaluating: SegmentMemory

    def __init__(self, cfg: LMMemoryConfig, **unused: Any) -> None:
        super().__init__(cfg)
        check(cfg)
        self.dictionary = Dictionary.load(str(Path(utils.split_paths(cfg.data)[0]) / "dict.txt"))
        logger.info("dictionary: %d types", len(self.dictionary))
        self.words = lm_checks.words(self.dictionary, cfg.subwords) if cfg.subwords else None
        #: values of tokens_per_sample and mem_length in training
        self.trained: dict[str, int] = {}
        self.trains = False
        #: number of segments in an epoch of training
        self.epoch_length = 0
        self._gathered: list[Any] = []

    def max_positions(self) -> None:
        """Return None, so that only the encoding limits the length of inputs."""

    # -- lengths ---------------------------------------------------------------------------------------

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model; its longest input in training is the memory and one segment.

        Raises:
            ValueError: The encoding or the architecture does not support memory.
        """
        if not from_checkpoint:
            self._begin_training(cfg)
        self.trained = self.trained or self._lengths_of_flags()
        model = super().build_model(cfg, from_checkpoint)
        lengths = {"--mem-length": self.trained["mem_length"], "--eval-mem-length": self.eval_memory}
        lm_checks.memory(model, lengths, self.cfg.same_length)
        if self.cfg.same_length and not from_checkpoint:
            lm_checks.windows(model.decoder.pos, self.trained["mem_length"])
        self.training, self.evaluating = (self._memory(length) for length in lengths.values())
        return model

    def _begin_training(self, cfg: Any) -> None:
        if self.cfg.sentence_avg:  # checked in training only: fairseq-eval-lm sets it to true
            raise InputError("--sentence-avg would divide the loss by the number of streams, not tokens. Leave it out.")
        if self.cfg.train_subset in self.cfg.valid_subset.split(","):  # it would be read as in training
            raise InputError(
                f"--valid-subset {self.cfg.valid_subset}: {self.cfg.train_subset} is the training set, which this task "
                f"cannot score during training. Leave {self.cfg.train_subset} out of --valid-subset, and score it "
                "after training with fairseq-validate."
            )
        remembered = MEMORY if self.cfg.mem_length is None else self.cfg.mem_length
        self.trained = {"tokens_per_sample": self.cfg.tokens_per_sample or SEGMENT, "mem_length": remembered}
        self.trains = True
        cfg.tokens_per_sample = self.trained["tokens_per_sample"]
        cfg.max_target_positions = sum(self.trained.values())
        state = {"lm_memory": self.trained, "lm_same_length": bool(self.cfg.same_length)}
        state["lm_subwords"] = self.cfg.subwords and str(self.cfg.subwords)
        self.state.merge_state_dict(state)  # stored in every checkpoint

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the lengths of segments and of the memory from a checkpoint, for evaluation.

        Raises:
            ValueError: The checkpoint does not contain the lengths, or --tokens-per-sample or --mem-length contradicts
                them.
        """
        super().load_state_dict(state_dict)
        if state_dict.get("lm_same_length") and not self.cfg.same_length:
            logger.warning(
                "The model was trained with --same-length. To evaluate the model in the same way, add this flag."
            )
        self._adopt(state_dict.get("lm_subwords"))
        self.trained = dict(state_dict.get("lm_memory") or self._lengths_of_flags())
        flags = {"tokens_per_sample": self.cfg.tokens_per_sample or None, "mem_length": self.cfg.mem_length}
        instead = {"tokens_per_sample": "--eval-segment-length", "mem_length": "--eval-mem-length"}
        for name, value in flags.items():
            if value is not None and value != self.trained[name]:
                raise InputError(
                    f"--{name.replace('_', '-')} {value}: the model was trained with {self.trained[name]}. To "
                    f"evaluate with another value, set {instead[name]} instead, and leave --context-window out."
                )

    def _adopt(self, subwords: Optional[str]) -> None:
        """Use the value of --subwords that the model was trained with."""
        own = self.cfg.subwords and str(self.cfg.subwords)
        if subwords and own != subwords:
            if own or self.trains:
                raise InputError(f"--subwords {own}: the model was trained with {subwords}. Give {subwords}.")
            self.words = lm_checks.words(self.dictionary, subwords)

    def _lengths_of_flags(self) -> dict[str, int]:
        """Return the lengths that the evaluation flags set, for a model that was trained with another task."""
        length, remembered = self.cfg.eval_segment_length, self.cfg.eval_mem_length
        if length is None or remembered is None:
            raise InputError(
                "The model was not trained with --task posenc_lm_memory. Give --eval-segment-length and "
                "--eval-mem-length, or use --task language_modeling."
            )
        return {"tokens_per_sample": length, "mem_length": remembered}

    @property
    def eval_length(self) -> int:
        """Return the number of tokens per segment in evaluation."""
        return int(self.cfg.eval_segment_length or self.trained["tokens_per_sample"])

    @property
    def eval_memory(self) -> int:
        """Return the number of states that the memory holds in evaluation."""
        own = self.cfg.eval_mem_length
        return int(self.trained["mem_length"] if own is None else own)

    def _memory(self, length: int) -> SegmentMemory:
        return SegmentMemory(length, span=length if self.cfg.same_length else None)

    # -- data ------------------------------------------------------------------------------------------

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **unused: Any) -> None:
        """Load a split as one long text."""
        paths = utils.split_paths(self.cfg.data)
        path = str(Path(paths[(epoch - 1) % len(paths)]) / split)
        lines = data_utils.load_indexed_dataset(path, self.dictionary, self.cfg.dataset_impl, combine=combine)
        if lines is None:
            raise FileNotFoundError(f"Dataset not found: {split} ({path}). Binarise the data with fairseq-preprocess.")
        if self.words is None and not self.datasets:
            lm_checks.warn_of_pieces(self.dictionary)
        symbols = {"first": self.dictionary.eos(), "pad": self.dictionary.pad()}
        self.datasets[split] = Corpus(lines, split, **symbols, words=self.words)

    def get_batch_iterator(
        self,
        dataset: Any,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        max_positions: Any = None,
        num_shards: int = 1,
        shard_id: int = 0,
        num_workers: int = 0,
        epoch: int = 1,
        data_buffer_size: int = 0,
        skip_remainder_batch: bool = False,
        grouped_shuffling: bool = False,
        **unused: Any,
    ) -> StreamIterator:
        """Return an iterator over segments in order, on --batch-size streams per worker.

        No segment is dropped, skipped or shuffled.

        Raises:
            ValueError: A flag would drop or reorder segments, or the encoding is not defined for inputs of this length.
        """
        if max_tokens is not None or max_sentences is None:
            raise InputError(
                "--task posenc_lm_memory needs --batch-size, the number of streams per worker (for validation "
                "--batch-size-valid), and does not support --max-tokens. Give --batch-size, and leave --max-tokens out."
            )
        for flag, is_set in (("skip-remainder-batch", skip_remainder_batch), ("grouped-shuffling", grouped_shuffling)):
            if is_set:
                raise InputError(f"--{flag} would drop or reorder segments of the streams. Leave it out.")
        training = self.trains and dataset.name == self.cfg.train_subset
        length, remembered = (self.eval_length, self.eval_memory)
        if training:
            length, remembered = self.trained["tokens_per_sample"], self.trained["mem_length"]
        lm_checks.positions(length, remembered, max_positions)
        flag = "--batch-size-valid" if self.trains and not training else "--batch-size"
        segments = Segments(dataset, streams=max_sentences, workers=num_shards, length=length, flag=flag)
        self.epoch_length = segments.count if training else self.epoch_length
        loading = {"num_workers": num_workers, "buffer_size": data_buffer_size}
        lengths = {"--mem-length": remembered, "--same-length": int(self.cfg.same_length)}
        return StreamIterator(segments, lengths, shard_id=shard_id, epoch=epoch, **loading)

    def eval_lm_dataloader(
        self,
        dataset: Corpus,
        max_tokens: Optional[int] = EVAL_LM_TOKENS,
        batch_size: Optional[int] = None,
        context_window: int = 0,
        **kwargs: Any,
    ) -> lm_scores.Remembering:
        """Return the batches for fairseq-eval-lm, which have one stream unless --batch-size is set.

        Raises:
            ValueError: --context-window is set, or `get_batch_iterator` refuses a flag.
        """
        if context_window:
            raise InputError(
                "--context-window does not work with --task posenc_lm_memory. Give --eval-mem-length instead."
            )
        lm_scores.log_both_perplexities()
        token_limit = None if max_tokens == EVAL_LM_TOKENS else max_tokens
        iterator = self.get_batch_iterator(dataset, token_limit, batch_size or 1, **kwargs)
        return lm_scores.Remembering(iterator.next_epoch_itr(shuffle=False), self.evaluating)

    # -- steps -----------------------------------------------------------------------------------------

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> Any:
        """Train on a batch, while the model reads and extends the memory for training."""
        with_memory = lm_scores.with_memory(sample, self.training)
        loss, size, output = super().train_step(with_memory, model, criterion, optimizer, update_num, ignore_grad)
        return loss, size, {**output, "nwords": sample["nwords"]}

    def valid_step(self, sample: Any, model: Any, criterion: Any) -> Any:
        """Validate with the memory for evaluation.

        The loss is a Python float, because float32 is too inexact to sum over a corpus.
        """
        loss, size, output = super().valid_step(lm_scores.with_memory(sample, self.evaluating), model, criterion)
        exact = {name: float(output[name]) for name in ("loss", "nll_loss") if name in output}
        return loss, size, {**output, **exact, "nwords": sample["nwords"]}

    def reduce_metrics(self, logging_outputs: Any, criterion: Any) -> None:
        """Log the values that fairseq logs, and the perplexities per token and per word."""
        super().reduce_metrics(logging_outputs, criterion)
        lm_scores.log(logging_outputs)

    def inference_step(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error, because this task does not generate text."""
        raise InputError(
            "--task posenc_lm_memory only scores text. To continue a prompt with memory, run "
            "`python -m fairseq_posenc generate-text`. For fairseq-generate, use --task language_modeling."
        )

    # -- checkpoints -----------------------------------------------------------------------------------

    def before_save(self) -> None:
        """Collect the memory of all workers; every worker calls this method before a checkpoint is saved."""
        self._gathered = lm_states.gathered(self.training)

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """Return the training memory to store in a checkpoint, or an empty dictionary at the end of an epoch."""
        if self.training.segment + 1 >= self.epoch_length:
            return {}
        return {type(self).__name__: {"segment": self.training.segment, "states": self._gathered}}

    def set_checkpoint_dict(self, saved: dict[str, Any]) -> None:
        """Continue with the memory that a checkpoint contains."""
        lm_states.restored(self.training, saved)

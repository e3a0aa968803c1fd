"""Define `posenc_squad`: extract answers from a text (SQuAD) with a pretrained model that has any encoding."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import hashlib
import logging
from operator import attrgetter
from pathlib import Path
from typing import Any, Optional

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II

from ..compat.checkpoints import CheckpointError
from ..core.options import option
from ..core.refusal import InputError
from ..data import spans
from ..data.words import MASK
from ..encodings import Composition
from ..models.finetuning import Finetuning
from ..models.lengths import check_length
from ..models.span_head import WithSpanHead

logger = logging.getLogger(__name__)

#: options of prepare_spans.py that decide the windows; a model's checkpoint stores their values
SHAPE = ("separators", "longest", "stride", "longest_question")
#: their names on its command line, if they differ
FLAGS = {"longest": "length", "longest_question": "longest-question"}


@dataclasses.dataclass
class SquadTaskConfig(FairseqDataclass):
    """Hold the options for the prepared windows."""

    data: Optional[str] = option(None, "Folder that data-bin-scripts/prepare_spans.py wrote.")
    train_subset: str = II("dataset.train_subset")


@register_task("posenc_squad", dataclass=SquadTaskConfig)
class SquadTask(Finetuning):
    """Answer questions on windows `<s> question </s></s> context </s>`.

    The model finds the first and the last token of the answer. If the windows are longer than the inputs of
    pretraining, the encoding has to be defined for their length.
    """

    source_dictionary = target_dictionary = property(attrgetter("dictionary"))

    def __init__(self, cfg: Any, dictionary: Dictionary) -> None:
        super().__init__(cfg)
        self.dictionary = dictionary
        self.folder = _folder(cfg.data)
        record = spans.record(self.folder)
        self.longest = int(record["longest"])
        self.shape = {name: int(record[name]) for name in SHAPE if name in record}

    @classmethod
    def setup_task(cls, cfg: Any, **unused: Any) -> "SquadTask":
        """Set the task up with the dictionary of the data, and add <mask>, which the pretrained model has."""
        dictionary = Dictionary.load(str(_folder(cfg.data) / spans.DICTIONARY))
        dictionary.add_symbol(MASK)
        logger.info("dictionary: %d types", len(dictionary))
        return cls(cfg, dictionary)

    def dictionary_of_pieces(self) -> tuple[Dictionary, Path]:
        return self.dictionary, self.folder / spans.DICTIONARY

    def max_positions(self) -> int:
        """Return the maximum length of a window."""
        return self.longest

    def untrained(self, cfg: Any, from_checkpoint: bool) -> Any:
        """Build the model with a new span head.

        Raises:
            ValueError: The architecture supports no span head, or the encoding is not defined for windows of this
                length.
        """
        model = FairseqTask.build_model(self, cfg, from_checkpoint)
        if not isinstance(model, WithSpanHead):
            name = type(model).__name__
            raise InputError(f"--task posenc_squad does not support {name}. Give --arch posenc_roberta_pretrained.")
        model.register_span_head()
        if not from_checkpoint:
            state = {"squad_dictionary": self.symbols_hash(), "squad_windows": self.shape}
            self.state.merge_state_dict(state)  # stored in every checkpoint
        check_windows(model.encoder.sentence_encoder.pos, self.longest)
        return model

    def symbols_hash(self) -> str:
        """Return a hash of the dictionary's symbols without their counts."""
        return hashlib.sha256("\n".join(self.dictionary.symbols).encode()).hexdigest()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Check that a checkpoint's model was trained on the pieces and windows of this folder.

        Raises:
            CheckpointError: The model was trained with another dictionary, or on windows with other separators.
        """
        super().load_state_dict(state_dict)
        if state_dict.get("squad_dictionary", self.symbols_hash()) != self.symbols_hash():
            raise CheckpointError(
                f"{self.folder / spans.DICTIONARY} differs from the dictionary with which the model was trained. "
                "Prepare the questions again with this model as --checkpoint and with its tokenizer."
            )
        trained = state_dict.get("squad_windows", {})
        other = {name: value for name, value in trained.items() if self.shape.get(name, value) != value}
        flags = " ".join(f"--{FLAGS.get(name, name)} {value}" for name, value in other.items())
        if "separators" in other:
            problem = "The model was trained on windows with other separators"
            raise CheckpointError(f"{problem}. Prepare the questions again with {flags}.")
        if other:  # allowed, because testing on longer windows is a valid experiment
            logger.warning(
                "The model was trained on other windows. To prepare such windows, run prepare_spans.py with %s.", flags
            )

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **unused: Any) -> None:
        """Load a split of the prepared folder."""
        shuffle = split == self.cfg.train_subset
        self.datasets[split] = spans.load(self.folder, split, self.dictionary, shuffle=shuffle)


def check_windows(pos: Composition, longest: int) -> None:
    """Raise an error if the encoding is not defined for windows of `longest` pieces.

    Raises:
        ValueError: The windows are too long; the message says what to do.
    """
    flags = "--length of prepare_spans.py and of the recipes"
    check_length(pos, longest, "windows", f"Use shorter windows ({flags}), or another encoding.")


def _folder(data: Optional[str]) -> Path:
    if not data or not Path(data).is_dir():
        raise CheckpointError(f"{data} is not a folder. Give a folder that prepare_spans.py wrote.")
    return Path(data)

"""Define `posenc_sentence_prediction`: fairseq's sentence_prediction for pretrained models with any encoding."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import json
from pathlib import Path
from typing import Any, Optional

from fairseq.data import Dictionary
from fairseq.tasks import register_task
from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

from ..core.options import option
from ..core.refusal import InputError
from ..models.classifier import PosEncClassifier
from ..models.finetuning import Finetuning
from ..models.lengths import check_length

RECORD = "glue.json"  # written by prepare_glue.py


@dataclasses.dataclass
class PosEncSentencePredictionConfig(SentencePredictionConfig):
    """Hold the options of fairseq's sentence_prediction, with the pretrained model's --max-positions as default."""

    max_positions: Optional[int] = option(None, "Longest sequence in tokens. Default: as in the pretrained model.")


@register_task("posenc_sentence_prediction", dataclass=PosEncSentencePredictionConfig)
class PosEncSentencePredictionTask(Finetuning, SentencePredictionTask):
    """Classify sentences or sentence pairs, or predict a number for each, from fairseq's folders input0, input1, label.

    A pair is `<s> a </s></s> b </s>` (--init-token 0 --separator-token 2, RoBERTa) or `<s> a </s> b </s>` (--init-token
    0, BERT). Unlike fairseq's task, which sets --max-positions to 512 by default, this task takes the length of the
    pretrained model.
    """

    def __init__(self, cfg: Any, data_dictionary: Dictionary, label_dictionary: Dictionary) -> None:
        super().__init__(cfg, data_dictionary, label_dictionary)
        for name in ("add_prev_output_tokens", "d2v2_multi"):
            if getattr(cfg, name):
                raise InputError(
                    f"--{name.replace('_', '-')} has no effect with --task posenc_sentence_prediction. Use --task "
                    "sentence_prediction."
                )

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> Any:
        """Return the task; by default, --num-classes is the number of labels in the data."""
        if cfg.num_classes <= 0 and not cfg.regression_target:
            labels = cls.load_dictionary(str(Path(cfg.data) / "label" / "dict.txt"))
            cfg.num_classes = len(labels) - labels.nspecial - 1  # fairseq adds <mask>
        return super().setup_task(cfg, **kwargs)

    def untrained(self, cfg: Any, from_checkpoint: bool) -> Any:
        """Return the model with a new head for --num-classes; a classifier from scratch also gets --word-vectors."""
        model = super().untrained(cfg, from_checkpoint)
        if isinstance(model, PosEncClassifier) and not from_checkpoint:
            model.start(init_token=self.cfg.init_token)
        if longest := self.longest_item():
            advice = "Prepare them again with --length LIMIT, or use another encoding."
            check_length(model.encoder.sentence_encoder.pos, longest, "items", advice)
        model.register_classification_head(self.cfg.classification_head_name, num_classes=self.cfg.num_classes)
        return model

    def longest_item(self) -> int:
        """Return the length in pieces of the longest item of all splits; 0 if prepare_glue.py did not record it."""
        record = Path(self.cfg.data) / RECORD
        if not record.is_file():
            return 0
        try:
            splits = json.loads(record.read_text(encoding="utf-8")).get("splits", {})
            return max((int(facts.get("longest", 0)) for facts in splits.values()), default=0)
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            problem = f"{record}: cannot read the lengths of the items ({error!r})"
            raise InputError(f"{problem}. Prepare the data again with prepare_glue.py.") from None

    def dictionary_of_pieces(self) -> tuple[Dictionary, Path]:
        return self.source_dictionary, Path(self.cfg.data) / "input0" / "dict.txt"

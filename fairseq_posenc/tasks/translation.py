"""Define `posenc_translation`, fairseq's translation task with several formulas for the length penalty."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Any

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from ..generation.options import SearchConfig, Searching, refuse_in_training


@dataclasses.dataclass
class PosEncTranslationConfig(SearchConfig, TranslationConfig):
    """Hold the options of fairseq's translation task and --lenpen-form, the formula of the length penalty."""


@register_task("posenc_translation", dataclass=PosEncTranslationConfig)
class PosEncTranslationTask(Searching, TranslationTask):
    """Translate with any translation model, and with the length penalty that --lenpen-form names.

    Example: fairseq-generate --task posenc_translation --lenpen 0.6 --lenpen-form gnmt.
    """

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build fairseq's model.

        Raises:
            ValueError: --lenpen-form is set for a training run that validates without BLEU.
        """
        if not from_checkpoint and not self.cfg.eval_bleu:
            refuse_in_training(self.cfg)
        return super().build_model(cfg, from_checkpoint)

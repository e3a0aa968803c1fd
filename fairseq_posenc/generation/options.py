"""Add --lenpen-form to tasks that generate text."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask

from ..core.options import option
from ..core.refusal import InputError
from .search import FORMS, GnmtGenerator, GnmtGeneratorWithAlignment


@dataclasses.dataclass
class SearchConfig(FairseqDataclass):
    """Define the search options that fairseq lacks."""

    lenpen_form: ChoiceEnum(FORMS) = option(  # type: ignore[valid-type]
        "fairseq",
        "Length penalty: divide the score of n tokens by n^A (`fairseq`) or by ((5 + n) / 6)^A (`gnmt`, Wu et al. "
        "2016), where A is --lenpen.",
    )


class Searching(FairseqTask):
    """Let a task generate text with the length penalty that --lenpen-form names."""

    @property
    def form(self) -> str:
        """Return the form of the length penalty: fairseq or gnmt."""
        return str(self.cfg.lenpen_form)

    def build_generator(
        self, models: Any, args: Any, seq_gen_cls: Any = None, extra_gen_cls_kwargs: Any = None, **more: Any
    ) -> Any:
        """Build fairseq's generator with this plugin's beam search.

        Raises:
            ValueError: --lenpen-form gnmt is combined with an option that would make it ineffective.
        """
        extra = dict(extra_gen_cls_kwargs or {})
        for name in ("unnormalized", "score_reference"):
            if self.form == "gnmt" and getattr(args, name, False):
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"--lenpen-form gnmt has no effect with {flag}. Leave out one of the two flags.")
        if seq_gen_cls is None:
            seq_gen_cls, arguments = self.generator_of(args)
            extra |= arguments
        return super().build_generator(models, args, seq_gen_cls=seq_gen_cls, extra_gen_cls_kwargs=extra, **more)

    def generator_of(self, args: Any) -> tuple[Any, dict[str, Any]]:
        """Return the class of the beam search (None for fairseq's choice) and its additional arguments."""
        if self.form == "fairseq":
            return None, {}
        alignment = getattr(args, "print_alignment", None)
        if alignment:
            return GnmtGeneratorWithAlignment, {"print_alignment": alignment}
        return GnmtGenerator, {}


def refuse_in_training(cfg: Any) -> None:
    """Raise an error if --lenpen-form is set for a training run that validates without beam search.

    Raises:
        ValueError: --lenpen-form is gnmt.
    """
    if str(cfg.lenpen_form) != "fairseq":
        raise InputError(
            "--lenpen-form has no effect in training without beam search in validation. Pass this flag to "
            "fairseq-generate or fairseq-interactive."
        )

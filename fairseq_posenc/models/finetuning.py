"""`posenc_roberta_pretrained`: a masked language model that was pretrained, for --task's that fine-tune it.

The sizes, the encoding and the weights are those of --pretrained. Checkpoints of the training hold them all, and need
the pretrained model no more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import register_model
from fairseq.tasks import FairseqTask

from ..compat.checkpoints import CheckpointError
from ..encodings.building import get, of_members
from ..hub import names
from ..hub.convert import converted
from ..hub.model import ModelConfig
from ..hub.pretrained import Pretrained
from .finetuning_config import SEGMENTS, SIZES, PretrainedConfig
from .masked_lm import PosEncRoberta
from .pretrained_encoder import pretrained_encoder, take

logger = logging.getLogger(__name__)

ARCH = "posenc_roberta_pretrained"
#: weights of a fine-tuned model that no pretrained one has
_NEW = ("classification_heads.",)
#: DIET's encodings, whose paper has segments per head beside them
_DIET = ("diet-rel", "diet-abs", "diet-abs-lin")


@register_model(ARCH, dataclass=PretrainedConfig)
class PosEncPretrained(PosEncRoberta):
    """A `posenc_roberta` whose masked-LM head rests: it gets no gradients, so that several processes agree."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncPretrained:
        """Build the model from options that `Finetuning.build_model` has completed.

        Raises:
            ValueError: see PosEncRoberta; and options that no pretrained model completed.
        """
        if cfg.encoder_layers is None:
            raise ValueError(
                f"--arch {ARCH} needs --pretrained, and a task that fine-tunes (posenc_sentence_prediction)"
            )
        model: PosEncPretrained = super().build_model(cfg, task)
        for name, parameter in model.encoder.lm_head.named_parameters():
            if name != "weight" or cfg.untie_weights_roberta:  # otherwise it is the embedding
                parameter.requires_grad_(False)
        return model


class Finetuning(FairseqTask):
    """A task whose models start from --pretrained: first among the bases of a task's class."""

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model with the weights of --pretrained.

        Raises:
            ValueError: options that contradict the pretrained model. CheckpointError: what cannot be started from.
        """
        source = None if from_checkpoint else getattr(cfg, "pretrained", None)
        if not source:
            return self.untrained(cfg, from_checkpoint)
        found = start(cfg, Path(source), *self.dictionary_of_pieces())
        model = self.untrained(cfg, from_checkpoint)
        load(model, found)
        return model

    def untrained(self, cfg: Any, from_checkpoint: bool) -> Any:
        """Build the model with its heads, before any weights are loaded."""
        return FairseqTask.build_model(self, cfg, from_checkpoint)

    def dictionary_of_pieces(self) -> tuple[Dictionary, Path]:
        """Return the dictionary of the data, and its file."""
        raise TypeError(f"{type(self).__name__} does not say which dictionary its data have")


def start(cfg: Any, source: Path, dictionary: Dictionary, file: Path) -> Pretrained:
    """Read the pretrained model, give it the encoding that the options ask for, and write its sizes into them.

    Args:
        dictionary: that of the data, from `file`.
    Raises:
        ValueError: options that contradict it. CheckpointError: what cannot be read, another tokenizer's vocabulary.
    """
    own = pretrained_encoder(source, dictionary, file)
    told = f"the model of --pretrained {source}"
    for name, theirs in SIZES.items():
        take(cfg, name, getattr(own.config, theirs), None, told)
    take(cfg, "encoder_normalize_before", own.config.normalize_before, False, told)
    take(cfg, "layernorm_embedding", own.config.layernorm_embedding, True, told)
    take(cfg, "untie_weights_roberta", not own.config.tied, False, told)
    cfg.pos_enc, cfg.pos_enc_args = encoding(own.config, cfg.pos_enc, cfg.pos_enc_args, str(cfg.segments))
    seed = torch.initial_seed()  # --seed, which fairseq has just set: what is made anew differs between runs
    made, report = converted(own, cfg.pos_enc, cfg.pos_enc_args, seed=seed)
    for line in report.lines():
        logger.info("%s: %s", source, line)
    return made


def encoding(own: ModelConfig, name: str | None, args: str | None, segments: str) -> tuple[str, str | None]:
    """Return --pos-enc and --pos-enc-args: the pretrained model's, with what the options change, and segments.

    Args:
        segments: a key of `SEGMENTS`.
    Raises:
        ValueError: unknown encodings or options; segments in two ways.
    """
    chosen = name or own.pos_enc
    added = SEGMENTS[segments]
    if segments == "none" or added in chosen.split("+"):
        spec = chosen
    elif present := [one for one in SEGMENTS.values() if one and one in chosen.split("+")]:
        raise ValueError(f"--segments {segments}: the model has {present[0]} already; leave --segments out")
    else:
        spec = f"{chosen}+{added}"
    kept = of_members(chosen, own.pos_enc_args) if chosen == own.pos_enc else {}
    given = {**kept, **of_members(spec, args)}
    if segments == "head" and spec != chosen and (share := _shared(chosen, given)):
        given.setdefault("segments.share", share)
    return spec, ",".join(f"{key}={value}" for key, value in given.items()) or None


def _shared(chosen: str, given: Mapping[str, Any]) -> str:
    """How tables of biases are shared that are made beside DIET's: as its own (METHODS.md 2.23). Other encodings have
    tables of rows, or none: beside them each head has its own."""
    member = next((name for name in chosen.split("+") if name in _DIET), None)
    if member is None:
        return ""
    share = str(given.get(f"{member.replace('-', '_')}.share", asdict(get(member).Options())["share"]))
    return "" if share == "none" else share


def load(model: Any, found: Pretrained) -> None:
    """Give a model of fairseq's its weights.

    Raises:
        CheckpointError: they do not fit.
    """
    tensors = dict(found.tensors)
    tensors.setdefault("lm_head.weight", tensors["embed_tokens.weight"])
    try:
        missing, unexpected = model.load_state_dict(names.to_fairseq(tensors), strict=False)
    except RuntimeError as error:
        raise CheckpointError(f"the weights are not those of the settings: {error}") from None
    missing = [name for name in missing if not name.startswith(_NEW) and not name.endswith("version")]
    if missing or unexpected:
        raise CheckpointError(f"the weights are not those of the settings: {[*missing, *unexpected][0]}")

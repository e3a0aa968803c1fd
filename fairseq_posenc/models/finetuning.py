"""Define `posenc_roberta_pretrained`, a pretrained masked language model for tasks that fine-tune it.

The sizes, the encoding and the weights come from --pretrained. Every checkpoint of the fine-tuned model stores its
sizes, encoding and weights, so loading it does not need the pretrained model.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import register_model
from fairseq.tasks import FairseqTask

from ..compat.checkpoints import CheckpointError
from ..core.refusal import InputError
from ..core.syntax import names_in, prefix
from ..encodings.building import get, parse
from ..hub import names
from ..hub.convert import converted
from ..hub.ids import Pretrained
from ..hub.model import ModelConfig
from .finetuning_config import SEGMENTS, SIZES, PretrainedConfig
from .masked_lm import PosEncRoberta
from .pretrained_encoder import pretrained_encoder, take

logger = logging.getLogger(__name__)

ARCH = "posenc_roberta_pretrained"
#: prefixes of weights that only a fine-tuned model has
_NEW = ("classification_heads.",)
#: encodings of the DIET paper, which combines them with segment biases per head
_DIET = ("diet-rel", "diet-abs", "diet-abs-lin")


@register_model(ARCH, dataclass=PretrainedConfig)
class PosEncPretrained(PosEncRoberta):
    """Fine-tune a `posenc_roberta` whose masked-LM head is frozen.

    Fine-tuning does not use the masked-LM head, and distributed training needs a gradient for every trainable weight.
    """

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncPretrained:
        """Build the model from options that `Finetuning.build_model` has completed.

        Raises:
            ValueError: --pretrained is missing, the task cannot fine-tune, or `PosEncRoberta` refuses the options.
        """
        if cfg.pos_enc_random is not None:
            raise InputError(
                "--pos-enc-random does not fit the model of --pretrained, which was trained at consecutive positions. "
                "Leave --pos-enc-random out, or train a new model with it."
            )
        if cfg.encoder_layers is None:
            raise InputError(
                f"--arch {ARCH} needs --pretrained FILE and a task that fine-tunes, such as posenc_sentence_prediction."
            )
        model: PosEncPretrained = super().build_model(cfg, task)
        for name, parameter in model.encoder.lm_head.named_parameters():
            if name != "weight" or cfg.untie_weights_roberta:  # a tied weight is the embedding, which is trained
                parameter.requires_grad_(False)
        return model


class Finetuning(FairseqTask):
    """Provide a base class for tasks whose models start from --pretrained.

    A task must list this class before its other base classes.
    """

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model and load the weights of --pretrained into it.

        Raises:
            ValueError: Options contradict the pretrained model.
            CheckpointError: The pretrained model cannot be used.
        """
        source = None if from_checkpoint else getattr(cfg, "pretrained", None)
        if not source:
            return self.untrained(cfg, from_checkpoint)
        pretrained = start(cfg, Path(source), *self.dictionary_of_pieces())
        model = self.untrained(cfg, from_checkpoint)
        load(model, pretrained)
        return model

    def untrained(self, cfg: Any, from_checkpoint: bool) -> Any:
        """Build the model with its heads, before any weights are loaded."""
        return FairseqTask.build_model(self, cfg, from_checkpoint)

    def dictionary_of_pieces(self) -> tuple[Dictionary, Path]:
        """Return the dictionary of the data and the file that it was read from."""
        raise TypeError(f"{type(self).__name__} must override `dictionary_of_pieces`.")


def start(cfg: Any, source: Path, dictionary: Dictionary, file: Path) -> Pretrained:
    """Read the pretrained model, convert it to the encoding that the options name, and write its sizes into `cfg`.

    Args:
        cfg: Options of the model, which are changed.
        source: Path of the pretrained model.
        dictionary: Dictionary of the data.
        file: File of the dictionary, for error messages.
    Raises:
        ValueError: The options contradict the pretrained model.
        CheckpointError: The model cannot be read, or its vocabulary belongs to another tokenizer.
    """
    own = pretrained_encoder(source, dictionary, file)
    description = f"the model of --pretrained {source}"
    for name, theirs in SIZES.items():
        take(cfg, name, getattr(own.config, theirs), None, description)
    take(cfg, "encoder_normalize_before", own.config.normalize_before, False, description)
    take(cfg, "layernorm_embedding", own.config.layernorm_embedding, True, description)
    take(cfg, "untie_weights_roberta", not own.config.tied, False, description)
    cfg.pos_enc, cfg.pos_enc_args = encoding(own.config, cfg.pos_enc, cfg.pos_enc_args, str(cfg.segments))
    seed = torch.initial_seed()  # fairseq has just set this seed; new weights follow it
    pretrained, report = converted(own, cfg.pos_enc, cfg.pos_enc_args, seed=seed)
    for line in report.lines():
        logger.info("%s: %s", source, line)
    return pretrained


def encoding(own: ModelConfig, name: str | None, args: str | None, segments: str) -> tuple[str, str | None]:
    """Return --pos-enc and --pos-enc-args for fine-tuning.

    The flags of the user change the values of the pretrained model: `name` replaces the encoding, `args` sets options,
    and `segments` adds an encoding of segments.

    Args:
        own: Settings of the pretrained model.
        name: Value of --pos-enc, with or without options in brackets, or None for the pretrained model's encoding.
        args: Value of --pos-enc-args, or None.
        segments: Value of --segments, a key of `SEGMENTS`.
    Raises:
        ValueError: An encoding or an option is unknown, or the model already has segments of another kind.
    """
    written = name or own.pos_enc
    members, added = names_in(written), SEGMENTS[segments]
    if segments == "none" or added in members:
        spec = written
    elif present := [name for name in SEGMENTS.values() if name and name in members]:
        raise InputError(f"--segments {segments}: the model already has {present[0]}. Leave --segments out.")
    else:
        spec = f"{written}+{added}"
    chosen = parse(spec, args)
    own_options = parse(own.pos_enc, own.pos_enc_args).by_owner() if members == names_in(own.pos_enc) else {}
    options = {**own_options, **chosen.by_owner()}
    if segments == "head" and spec != written and (share := _shared(members, options)):
        options.setdefault("segments.share", share)
    return chosen.name, ",".join(f"{key}={value}" for key, value in options.items()) or None


def _shared(members: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the `share` option of a DIET encoding, so that added segment tables can use it too.

    Return an empty string if the position table is not shared, or if the encoding is not DIET.
    """
    member = next((name for name in members if name in _DIET), None)
    if member is None:
        return ""
    share = str(options.get(f"{prefix(member)}share", asdict(get(member).Options())["share"]))
    return "" if share == "none" else share


def load(model: Any, pretrained: Pretrained) -> None:
    """Load the pretrained weights into a fairseq model.

    Raises:
        CheckpointError: The weights do not fit the model.
    """
    tensors = dict(pretrained.tensors)
    tensors.setdefault("lm_head.weight", tensors["embed_tokens.weight"])
    try:
        missing, unexpected = model.load_state_dict(names.to_fairseq(tensors), strict=False)
    except RuntimeError as error:
        problem = f"The weights do not match the settings of the pretrained model ({error})"
        raise CheckpointError(f"{problem}. Give another model to --pretrained.") from None
    missing = [name for name in missing if not name.startswith(_NEW) and not name.endswith("version")]
    if missing or unexpected:
        fault = f"{missing[0]} is missing" if missing else f"{unexpected[0]} is unexpected"
        problem = f"The weights do not match the settings of the pretrained model: {fault}"
        raise CheckpointError(f"{problem}. Give another model to --pretrained.")

"""Hold a pretrained model, and put its ids into fairseq's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..data.words import MASK
from .model import LanguageModel, ModelConfig
from .names import BY_ID

#: The special symbols of fairseq, by id.
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")


@dataclass(frozen=True)
class Pretrained:
    """Hold a pretrained model with the settings and weights of its source.

    Args:
        config: Settings of the model, including its encoding and the ids of its special symbols.
        tensors: Weights, keyed by their names in `LanguageModel`.
        vocabulary: The pieces in the order of their ids; None if the source has no vocabulary.
        unused: Names of the source's weights that `LanguageModel` does not have.
        dictionary: The dict.txt from which the vocabulary was read, if there was one.
        notes: Sentences for users of the model, such as its differences from the source.
    """

    config: ModelConfig
    tensors: Mapping[str, Tensor]
    vocabulary: list[str] | None = None
    unused: Sequence[str] = field(default_factory=list)
    dictionary: Path | None = None
    notes: tuple[str, ...] = ()

    def model(self, source: Path) -> LanguageModel:
        """Build the model in plain torch, in evaluation mode.

        Args:
            source: Folder or file of the weights, for error messages.
        Raises:
            CheckpointError: The weights do not fit the settings.
        """
        model, use = LanguageModel(self.config), "Use settings and weights of the same model."
        try:
            missing, unexpected = model.load_state_dict(dict(self.tensors), strict=False)
        except RuntimeError as error:
            problem = f"{source}: the weights do not fit the settings ({' '.join(str(error).split())})"
            raise CheckpointError(f"{problem}. {use}") from None
        if missing:
            raise CheckpointError(f"{source} has no weight {missing[0]}, so it is not a complete model. {use}")
        if unexpected:
            raise CheckpointError(f"{source} has the weight {unexpected[0]}, which does not fit its settings. {use}")
        return model.eval()


def reordered(source: Pretrained) -> Pretrained:
    """Return the model with its ids in fairseq's order: special symbols first, <mask> last.

    Raises:
        CheckpointError: The id of the mask or of a special symbol is not known.
    """
    order = fairseq_order(source.config)
    tensors = {name: tensor[order] if name in BY_ID else tensor for name, tensor in source.tensors.items()}
    pieces = None if source.vocabulary is None else in_order(source.vocabulary, order, source.config)
    mask = None if source.config.causal else len(order) - 1
    first = SPECIALS.index("</s>" if source.config.first == source.config.eos else "<s>")
    config = replace(source.config, bos=0, pad=1, eos=2, unk=3, mask=mask, first=first)
    return replace(source, config=config, tensors=tensors, vocabulary=pieces)


def fairseq_order(config: ModelConfig) -> list[int]:
    """Return the ids of a model in fairseq's order: <s>, <pad>, </s> and <unk> come first, <mask> comes last.

    Raises:
        CheckpointError: The id of the mask or of a special symbol is not known.
    """
    first = [config.bos, config.pad, config.eos, config.unk]
    last = [] if config.causal else [config.vocabulary if config.mask is None else config.mask]
    special = {*first, *last}
    if len(special) < len(first) + len(last) or max(special) >= config.vocabulary or min(special) < 0:
        raise CheckpointError("the ids of [CLS], [PAD], [SEP], [UNK] and [MASK] are unknown. Add the vocabulary file.")
    return [*first, *sorted(set(range(config.vocabulary)) - special), *last]


def in_order(listed: Sequence[str], order: Sequence[int], config: ModelConfig) -> list[str]:
    """Return pieces in the order of `order`, with fairseq's special symbols.

    An id without a piece, a piece that occurs again, and a piece that equals a special symbol, which dict.txt cannot
    contain, get a made-up name that no text contains.
    """
    last = [] if config.causal else [MASK]
    symbols, known = list(SPECIALS), {*SPECIALS, *last}
    for i in order[len(SPECIALS) : len(order) - len(last)]:
        piece = listed[i] if i < len(listed) else ""
        symbols.append(f"madeupword{i}" if not piece or piece in known else piece)
        known.add(piece)
    return [*symbols, *last]


def symbols_in_dictionary(model: Pretrained) -> list[str]:
    """Return the symbols for dict.txt, without special symbols and <mask>, which fairseq's task appends.

    The ids must be in fairseq's order. Without a vocabulary, the symbols are numbers.
    """
    size = model.config.vocabulary - (not model.config.causal)
    if model.vocabulary is None:
        return list(map(str, range(len(SPECIALS), size)))
    return in_order(model.vocabulary, range(model.config.vocabulary), model.config)[len(SPECIALS) : size]

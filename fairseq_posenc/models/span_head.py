"""Define a head that extracts an answer by a start and an end logit of each token (Devlin et al. 2019, section 4.2).

Legend: B batch, T tokens, d width.
"""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor, nn

from ..core.refusal import InputError

logger = logging.getLogger(__name__)

#: standard deviation of the initial weights, as in BERT
INIT_STD = 0.02
_NAME = "span_head"


class SpanHead(nn.Module):
    """Compute the logits of the first and of the last token of the answer: [B, T, d] -> [B, T, 2]."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out_proj = nn.Linear(dim, 2)
        nn.init.normal_(self.out_proj.weight, std=INIT_STD)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.out_proj(features)
        return logits


class WithSpanHead:
    """Give a fairseq encoder model an optional span head.

    This mixin must precede fairseq's model among the base classes.
    """

    args: Any
    encoder: Any
    span_head: SpanHead

    def register_span_head(self) -> None:
        """Add a newly initialised span head."""
        self.span_head = SpanHead(self.args.encoder_embed_dim)

    def forward(self, src_tokens: Tensor, *more: Any, spans: bool = False, **inputs: Any) -> tuple[Tensor, Any]:
        """Run fairseq's model; with `spans`, return the span head's logits [B, T, 2] and the additional outputs.

        `spans` is an argument of forward because wrappers for distributed training call no other method.

        Raises:
            ValueError: The model has no span head.
        """
        if not spans:
            output: tuple[Tensor, Any] = super().forward(src_tokens, *more, **inputs)  # type: ignore[misc]
            return output
        if not hasattr(self, _NAME):
            raise InputError(
                "This model has no span head. To add a span head, fine-tune the model with --task posenc_squad."
            )
        features, extra = super().forward(src_tokens, *more, features_only=True, **inputs)  # type: ignore[misc]
        return self.span_head(features), extra

    def upgrade_state_dict_named(self, state_dict: dict[str, Any], name: str) -> None:
        """Make the span head in a checkpoint's weights fit this model.

        A model without a span head drops the checkpoint's span head. If the checkpoint has no span head, the model
        keeps the weights of its own span head.
        """
        super().upgrade_state_dict_named(state_dict, name)  # type: ignore[misc]
        prefix = f"{name}." if name else ""
        own = getattr(self, _NAME, None)
        mine = {} if own is None else {f"{prefix}{_NAME}.{key}": value for key, value in own.state_dict().items()}
        for key in [key for key in state_dict if key.startswith(f"{prefix}{_NAME}.") and key not in mine]:
            logger.info("The weight %s of the checkpoint is not loaded, because this model has no span head.", key)
            del state_dict[key]
        for key, value in mine.items():
            state_dict.setdefault(key, value)

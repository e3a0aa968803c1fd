"""Where an answer begins and ends: two logits of each token (Devlin et al. 2019, section 4.2).

Legend: B batch, T tokens, d width.
"""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor, nn

logger = logging.getLogger(__name__)

#: as all of BERT's weights
INIT_STD = 0.02
_NAME = "span_head"


class SpanHead(nn.Module):
    """[B, T, d] -> [B, T, 2]: logits of the first and of the last token."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out_proj = nn.Linear(dim, 2)
        nn.init.normal_(self.out_proj.weight, std=INIT_STD)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, features: Tensor) -> Tensor:
        found: Tensor = self.out_proj(features)
        return found


class WithSpanHead:
    """An encoder model of fairseq's that can get such a head, as it can get classification heads.

    It is named before fairseq's model among a class's bases.
    """

    args: Any
    encoder: Any
    span_head: SpanHead

    def register_span_head(self) -> None:
        """A new one."""
        self.span_head = SpanHead(self.args.encoder_embed_dim)

    def forward(self, src_tokens: Tensor, *more: Any, spans: bool = False, **inputs: Any) -> tuple[Tensor, Any]:
        """fairseq's; with `spans` the logits [B, T, 2], and its extras.

        It is a flag, as wrappers for several processes know no other way to a model.

        Raises:
            ValueError: there is no head.
        """
        if not spans:
            made: tuple[Tensor, Any] = super().forward(src_tokens, *more, **inputs)  # type: ignore[misc]
            return made
        if not hasattr(self, _NAME):
            raise ValueError("this model has no head for spans of text: --task posenc_squad makes one")
        features, extra = super().forward(src_tokens, *more, features_only=True, **inputs)  # type: ignore[misc]
        return self.span_head(features), extra

    def upgrade_state_dict_named(self, state_dict: dict[str, Any], name: str) -> None:
        """A model without the head leaves the checkpoint's; one with it keeps its own where the checkpoint has none."""
        super().upgrade_state_dict_named(state_dict, name)  # type: ignore[misc]
        prefix = f"{name}." if name else ""
        own = getattr(self, _NAME, None)
        mine = {} if own is None else {f"{prefix}{_NAME}.{key}": value for key, value in own.state_dict().items()}
        for key in [key for key in state_dict if key.startswith(f"{prefix}{_NAME}.") and key not in mine]:
            logger.info("%s of the checkpoint is left out: this task has no spans", key)
            del state_dict[key]
        for key, value in mine.items():
            state_dict.setdefault(key, value)

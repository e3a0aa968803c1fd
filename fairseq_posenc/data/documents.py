"""Number the documents or lines of a sequence, in plain torch.

A line ends with </s>. An empty line, which is </s> alone, ends a document and is its last token. Every further empty
line is a document of its own.

Legend: B batch, T tokens.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

SEQUENCE, DOCUMENT, LINE = "sequence", "document", "line"


def of_tokens(tokens: Tensor, within: str, *, bos: int, eos: int) -> Tensor:
    """Return the number of the document or line that contains each token, from 0: [B, T] int64.

    A sequence may begin with <s>, which belongs to the first document. A </s> that follows <s> is an empty line.

    Args:
        tokens: Tokens without masks, [B, T].
        within: `DOCUMENT` or `LINE`.
        bos, eos: Ids of <s> and </s>.
    """
    return F.pad(_ends(tokens, within, bos, eos)[:, :-1], (1, 0)).cumsum(1)


def of_next_tokens(tokens: Tensor, within: str, *, bos: int, eos: int) -> Tensor:
    """Return, for each input of a language model, the number of the document or line that contains the next token.

    The input that predicts the first token of a document is the </s> before this token, so this </s> gets the number
    of the document. fairseq likewise puts </s> before the first token of a sequence that is a single document.

    Args:
        tokens: Inputs of a language model, [B, T]; the other arguments are those of `of_tokens`.
    Returns:
        Numbers from 0, [B, T] int64.
    """
    return _ends(tokens, within, bos, eos).cumsum(1)


def _ends(tokens: Tensor, within: str, bos: int, eos: int) -> Tensor:
    """Return which tokens end a document or a line, [B, T] bool."""
    ends_line = tokens.eq(eos)
    if within == LINE:
        return ends_line
    begins_line = F.pad((ends_line | tokens.eq(bos))[:, :-1], (1, 0))
    return ends_line & begins_line

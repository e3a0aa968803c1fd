"""Define `posenc_classifier`, a text classifier that is trained from scratch, with any position encoding.

Legend: B batch, T tokens, d width of the model, C classes.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoder, FairseqEncoderModel, register_model
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..core.refusal import InputError
from .classifier_config import LONGEST, ClassifierConfig
from .config import nested, register_sizes, spell_out, values_of
from .masked_lm import SentenceEncoder
from .weight_decay import refuse_without_effect

#: the tensor in a file of word vectors: [words of dict.txt, width]
VECTORS = "vectors"


class WordEmbedding(nn.Module):
    """Embed words, and project the vectors to the model's width if the widths differ.

    Qu et al. 2021 initialise the embeddings of a model of width 512 with vectors of width 300, and do not say how.
    """

    def __init__(self, words: int, width: int, dim: int, pad: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, pad)
        self.projection = nn.Linear(width, dim, bias=False) if width != dim else None
        self.num_embeddings, self.embedding_dim, self.padding_idx = words, dim, pad
        nn.init.normal_(self.words.weight, std=width**-0.5)
        nn.init.zeros_(self.words.weight[pad])

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors [B, T, d] of tokens [B, T]."""
        vectors: Tensor = self.words(tokens)
        return vectors if self.projection is None else self.projection(vectors)

    def start_with(self, file: Path, first: int) -> None:
        """Copy word vectors from a file into the embedding's rows from `first` on.

        The rows before `first`, which belong to special symbols, keep their initial values.

        Raises:
            ValueError: The file cannot be read, or its vectors do not fit the dictionary or the width of the embedding.
        """
        vectors = _read(file)
        room = self.words.weight[first : first + len(vectors)]
        if vectors.shape != room.shape or len(vectors) < self.num_embeddings - first - 1:  # the task adds <mask>
            raise InputError(
                f"--word-vectors {file}: the file has {len(vectors)} vectors of width {vectors.shape[1]}, but the "
                f"dictionary has {self.num_embeddings - first} words and --embedding-dim is "
                f"{self.words.embedding_dim}. Give the file that belongs to this dictionary."
            )
        with torch.no_grad():
            room.copy_(vectors)


class ClassifierEncoder(FairseqEncoder):
    """Encode text with a Transformer, and pool the outputs."""

    def __init__(self, cfg: Any, dictionary: Any, max_positions: int) -> None:
        super().__init__(dictionary)
        self.pooling = str(cfg.pooling)
        embedding = WordEmbedding(len(dictionary), cfg.embedding_dim, cfg.encoder_embed_dim, dictionary.pad())
        config = nested(
            vars(cfg), max_source_positions=max_positions, no_scale_embedding=True, layernorm_embedding=True
        )
        stack = SentenceEncoder if self.pooling == "cls" else _WithoutCls
        self.sentence_encoder = stack(config, dictionary, embedding)  # type: ignore[arg-type]

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> Tensor:
        """Return the pooled outputs [B, d] of tokens [B, T]."""
        states: Tensor = self.sentence_encoder(src_tokens)["encoder_out"][0]  # [T, B, d]
        if self.pooling == "cls":
            return states[0]
        padding = src_tokens.eq(self.dictionary.pad()).T[..., None]  # [T, B, 1]
        return states.masked_fill(padding, float("-inf")).amax(0)

    def max_positions(self) -> int:
        """Return the length of the longest sequence for which the encoding is defined."""
        return self.sentence_encoder.max_positions()


class _WithoutCls(SentenceEncoder):
    """Encode samples that begin with a word instead of [CLS]."""

    has_cls = False


@register_model("posenc_classifier", dataclass=ClassifierConfig)
class PosEncClassifier(FairseqEncoderModel):
    """Classify text with a Transformer encoder over words and a linear head, for --task posenc_sentence_prediction."""

    def __init__(self, cfg: Any, encoder: ClassifierEncoder) -> None:
        super().__init__(encoder)
        self.args = cfg
        self.dropout = nn.Dropout(cfg.dropout)
        self.classification_heads = nn.ModuleDict()

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the options to the parser without defaults, so that the defaults of an architecture take precedence."""
        gen_parser_from_dataclass(parser, ClassifierConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncClassifier:
        """Build the model from its options.

        Raises:
            ValueError: An encoding or option is unknown, or the encoding does not support an option.
        """
        if cfg.embedding_dim is None:  # a checkpoint stores the width, so loading it needs no file
            cfg.embedding_dim = width_of(Path(cfg.word_vectors)) if cfg.word_vectors else cfg.encoder_embed_dim
        values = Namespace(**values_of(cfg, ClassifierConfig))
        longest = values.max_positions or task.max_positions() or LONGEST
        model = cls(values, ClassifierEncoder(values, task.source_dictionary, longest))
        refuse_without_effect(values, model.encoder.sentence_encoder)
        spell_out(cfg)
        return model

    def register_classification_head(self, name: str, num_classes: int, **unused: Any) -> None:
        """Add a linear head; --task posenc_sentence_prediction calls this method."""
        self.classification_heads[name] = nn.Linear(self.args.encoder_embed_dim, num_classes)

    def start(self, *, init_token: int | None) -> None:
        """Copy the vectors of --word-vectors; the task calls this method unless the weights come from a checkpoint.

        Args:
            init_token: Value of --init-token, the id that begins each sample; None if it is not set.
        Raises:
            ValueError: --pooling and --init-token contradict each other, or the vectors do not fit.
        """
        if self.encoder.pooling == "cls" and init_token is None:
            raise InputError(
                "--pooling cls reads the first token, but --init-token is not set. Give --init-token 0, so that each "
                "sample begins with <s>."
            )
        if self.encoder.pooling == "max" and init_token is not None:
            raise InputError(
                "--init-token has no effect with --pooling max. Leave out --init-token, or give --pooling cls."
            )
        if self.args.word_vectors:
            embedding = self.encoder.sentence_encoder.embed_tokens
            embedding.start_with(Path(self.args.word_vectors), self.encoder.dictionary.nspecial)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        features_only: bool = True,
        classification_head_name: str | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the logits [B, C] of a head, or the pooled outputs [B, d] without a head, and an empty dictionary."""
        pooled = self.encoder(src_tokens)
        if classification_head_name is None:
            return pooled, {}
        return self.classification_heads[classification_head_name](self.dropout(pooled)), {}


def width_of(file: Path) -> int:
    """Return the width of the word vectors in a file.

    Raises:
        ValueError: The file cannot be read.
    """
    return int(_read(file).shape[1])


def _read(file: Path) -> Tensor:
    try:
        with safe_open(file, "pt") as opened:
            vectors: Tensor = opened.get_tensor(VECTORS)
    except (OSError, SafetensorError) as error:
        problem = f"--word-vectors {file} cannot be read ({error})"
        raise InputError(f"{problem}. Create the file with prepare_text_classification.py.") from None
    return vectors


register_sizes("posenc_classifier")

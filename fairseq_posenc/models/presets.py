"""Define the sizes of the architectures: the values that each preset writes into the arguments.

The YAML files in `config/model/` repeat the values of the presets for Hydra, which ignores architectures.
"""

from __future__ import annotations

from typing import Any


def _encoder(layers: int, dim: int, heads: int, ffn: int | None = None) -> dict[str, Any]:
    """Return the sizes of an encoder; by default, its feed-forward layers are four times as wide as its width `dim`."""
    return {
        "encoder_layers": layers,
        "encoder_embed_dim": dim,
        "encoder_ffn_embed_dim": ffn or 4 * dim,
        "encoder_attention_heads": heads,
    }


def _both(layers: int, dim: int, heads: int, ffn: int) -> dict[str, Any]:
    """Return the sizes of an encoder and a decoder that have the same width."""
    return {**_encoder(layers, dim, heads, ffn), "decoder_layers": layers, "decoder_attention_heads": heads}


#: 'big' of Vaswani et al. 2017, which is fairseq's transformer_vaswani_wmt_en_de_big
BIG = {
    "encoder_embed_dim": 1024,
    "encoder_ffn_embed_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "dropout": 0.3,
}

#: Like the DIET paper (Chen et al. 2021), the WMT presets use the sinusoids of tensor2tensor, whose frequencies differ
#: from those of Vaswani et al.
T2T = {"pos_enc_defaults": "sinusoidal.freq=t2t"}

#: translation; `posenc_transformer` without suffix is 'base' of Vaswani et al. 2017, fairseq's transformer_wmt_en_de
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _both(2, 64, 2, 64),  # fairseq's transformer_tiny
    "small": _both(3, 128, 4, 512),  # for corpora of about ten thousand sentences (Multi30k)
    "iwslt_de_en": _both(6, 512, 4, 1024),  # fairseq's transformer_iwslt_de_en
    "wmt_en_de": T2T,
    "wmt_en_de_big": {**BIG, **T2T},
}

BERT = {"layer_norm_eps": 1e-12}

#: masked language models; `posenc_roberta` without suffix has the sizes of roberta_base
MASKED_LM: dict[str, dict[str, Any]] = {
    "roberta_tiny": _encoder(4, 128, 4),
    "roberta_small": _encoder(6, 512, 8),
    "roberta_base": _encoder(12, 768, 12),
    "roberta_large": _encoder(24, 1024, 16),
    "bert_small": {**_encoder(4, 512, 8), **BERT},  # as in Table 1 of the DIET paper
    "bert_base": {**_encoder(12, 768, 12), **BERT},
    "bert_large": {**_encoder(24, 1024, 16), **BERT},
}


def _decoder(layers: int, dim: int, heads: int, ffn: int) -> dict[str, Any]:
    return {
        "decoder_layers": layers,
        "decoder_embed_dim": dim,
        "decoder_ffn_embed_dim": ffn,
        "decoder_attention_heads": heads,
    }


TIED = {"share_decoder_input_output_embed": True}

#: language models; `posenc_transformer_lm` without suffix is fairseq's transformer_lm
LM: dict[str, dict[str, Any]] = {
    "tiny": {**_decoder(2, 64, 2, 128), **TIED},
    "small": {**_decoder(4, 256, 4, 1024), **TIED},
    # Transformer-XL base on WikiText-103 (Dai et al. 2019, its run_wt103_base.sh). It uses one dropout rate for the
    # embeddings, the outputs of layers, the hidden units of feed-forward layers, and the input of the softmax.
    "wt103": {
        **_decoder(16, 410, 10, 2100),
        "adaptive_one_matrix": True,
        "adaptive_softmax_cutoff": "20000,40000,200000",
        "no_attention_bias": True,
        "init_std": 0.02,
        "dropout": 0.1,
        "activation_dropout": 0.1,
        "adaptive_softmax_dropout": 0.1,
        "attention_dropout": 0.0,
    },
}

#: Question generation; `posenc_question_generation` without suffix has an encoder like BERT base, or the pretrained
#: one. Its decoder is that of the LFHC/GCDF paper (Qu et al.): 3 layers, 12 heads, feed-forward layers of 3072.
QUESTION_GENERATION: dict[str, dict[str, Any]] = {
    "tiny": {
        **_encoder(2, 64, 4, ffn=128),
        "decoder_layers": 2,
        "decoder_ffn_embed_dim": 128,
        "decoder_attention_heads": 4,
    },
}

#: text classifiers from scratch; `posenc_classifier`, without suffix, is the one of Qu et al. 2021: 8 layers, 8 heads,
#: width 512, feed-forward layers of 2048
CLASSIFIER: dict[str, dict[str, Any]] = {"tiny": _encoder(2, 64, 4)}

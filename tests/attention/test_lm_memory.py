"""Test that a model with memory of earlier segments computes the same as the definition of memory.

Legend: B streams, N tokens, T tokens of a segment, M states of memory, d width, V types.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("fairseq")

from fairseq.data import Dictionary
from laws.cases import Case, defaults
from laws.compare import assert_close
from support_plain_lm import by_prefixes, mask

from fairseq_posenc.attention.memory import SegmentMemory
from fairseq_posenc.generation.continuation import continued
from fairseq_posenc.models.lm import PosEncTransformerLM
from fairseq_posenc.models.lm_config import LMPosEncConfig

STREAMS, TOKENS, SEGMENT, MEMORY = 2, 18, 5, 7  # the last segment has 3 tokens
WORDS = 20

#: All encodings that allow memory, in a decoder.
CASES = defaults(lambda case: case.causal and case.capabilities.memory)


def model_of(encoding: str, **options: Any) -> Any:
    """Return a random model in float64 and in evaluation mode."""
    sizes = {"embed_dim": 16, "ffn_embed_dim": 16, "layers": 2, "attention_heads": 2}
    options |= {f"decoder_{name}": size for name, size in sizes.items()}
    lengths = {"tokens_per_sample": SEGMENT, "max_target_positions": TOKENS}
    config = LMPosEncConfig(pos_enc=encoding, **lengths, **options)
    dictionary = Dictionary()
    for number in range(WORDS):
        dictionary.add_symbol(f"w{number}")
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = PosEncTransformerLM.build_model(config, task)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * torch.randn(parameter.shape)
    return model.double().eval()


def text(length: int = TOKENS) -> Tensor:
    """Return random tokens that begin with </s>, [B, N]."""
    tokens = torch.randint(4, 4 + WORDS, (STREAMS, length), generator=torch.Generator().manual_seed(1))
    tokens[:, 0] = 2
    return tokens


def read(model: Any, tokens: Tensor, segment: int, memory: SegmentMemory) -> Tensor:
    """Return the logits that the model computes segment by segment, [B, N, V]."""
    with torch.no_grad():
        parts = [model(part, memory=memory.begin(i))[0] for i, part in enumerate(tokens.split(segment, 1))]
    return torch.cat(parts, 1)


# -- the definition ---------------------------------------------------------------------------------------


@torch.no_grad()
def defined(model: Any, tokens: Tensor, memory: int = MEMORY, **how: bool) -> Tensor:
    """Return the logits by the definition of memory, with one forward pass for each prefix: [B, N] -> [B, N, V]."""
    return model.decoder.output_layer(by_prefixes(model, tokens, mask(TOKENS, SEGMENT, memory, **how)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_memory_is_its_definition(case: Case) -> None:
    """Every layer is compared, over several segments and a shorter last one."""
    model, tokens = model_of(case.spec), text()
    for span, same_length in ((None, False), (MEMORY, True)):
        actual = read(model, tokens, SEGMENT, SegmentMemory(MEMORY, span=span))
        assert_close(actual, defined(model, tokens, same_length=same_length), 1e-9, case.spec)


def test_a_column_too_few_is_caught() -> None:
    model, tokens = model_of("xl"), text()
    actual = read(model, tokens, SEGMENT, SegmentMemory(MEMORY))
    with pytest.raises(AssertionError, match="xl: differs"):
        assert_close(actual, defined(model, tokens, MEMORY - 1), 1e-9, "xl")


@pytest.mark.parametrize("norm", [False, True], ids=["post-LN", "pre-LN"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_memory_of_all_makes_segments_one(norm: bool, checkpointing: bool) -> None:
    model = model_of("xl", decoder_normalize_before=norm, checkpoint_activations=checkpointing)
    with torch.no_grad():
        whole = model(text())[0]
    assert_close(read(model, text(), 4, SegmentMemory(TOKENS)), whole, 1e-9)


# -- properties of the memory -----------------------------------------------------------------------------


def test_memory_has_no_gradient() -> None:
    """The gradient of a segment treats the states of earlier segments as constants."""
    model, memory = model_of("xl").train(), SegmentMemory(MEMORY)
    early, late, *_ = text().split(SEGMENT, 1)
    model(early, memory=memory.begin(0))
    assert [(tuple(state.shape), state.requires_grad) for state in memory.states] == [
        ((SEGMENT, STREAMS, 16), False)
    ] * 2
    model(late, memory=memory.begin(1))[0].logsumexp(-1).sum().backward()
    rows = model.decoder.embed_tokens.weight.grad.abs().sum(1)
    assert all(rows[word] == 0 for word in set(early.flatten().tolist()) - set(late.flatten().tolist()))
    assert memory.columns == MEMORY


def test_segments_come_in_order_or_again() -> None:
    """fairseq repeats a step that failed, and skips one that runs out of memory."""
    memory, states = SegmentMemory(MEMORY), [torch.randn(SEGMENT, STREAMS, 4)]
    with pytest.raises(ValueError, match="segment 3 of the streams came after nothing"):
        memory.begin(3)
    memory.begin(0).keep(states)
    memory.begin(1)
    with pytest.raises(ValueError, match=r"segment 2 of the streams came after segment 0.*lower --batch-size"):
        memory.begin(2)
    memory.keep(states)
    before = memory.begin(2).states
    memory.keep(states)
    assert memory.begin(2).states == before
    with pytest.raises(ValueError, match="segment 1 of the streams came after segment 2"):
        memory.begin(1)
    assert memory.begin(0).columns == 0
    SegmentMemory(0).begin(0).begin(1).begin(2)  # without a memory, no segment is missing


# -- generation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_prompt_goes_on_as_recomputed(case: Case) -> None:
    """Continuation with cache and memory equals recomputing from the first token at each step."""
    model, tokens = model_of(case.spec), text(8)
    actual, scores = continued(model, tokens, 9, segment=SEGMENT, remembered=MEMORY)
    for step in range(9):
        logits = read(model, tokens, SEGMENT, SegmentMemory(MEMORY))[:, -1].log_softmax(-1)
        assert_close(scores[:, step], logits.max(-1).values, 1e-6, case.spec)  # fairseq's scores are float32
        tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
    assert torch.equal(actual, tokens)


def test_prompts_with_pads_are_refused() -> None:
    tokens = text(4)
    tokens[0, -1] = 1
    with pytest.raises(ValueError, match="no padding"):
        continued(model_of("xl"), tokens, 2, segment=SEGMENT, remembered=MEMORY)


def test_a_memory_has_the_last_states_of_all_segments() -> None:
    """Segments may be shorter than the memory or longer; the states have the type of the newest."""
    memory, states, seen = SegmentMemory(3), torch.arange(11.0)[:, None, None], 0
    for number, part in enumerate(states.split([2, 2, 5, 1, 1])):
        memory.begin(number).keep([part])
        seen += len(part)
        assert memory.states[0].equal(states[max(0, seen - 3) : seen])
    memory.begin(5).keep([states[:1].bfloat16()])
    assert memory.states[0].dtype == torch.bfloat16
    with pytest.raises(ValueError, match="the memory has 1 layers, but keep\\(\\) got the inputs of 2 layers"):
        memory.begin(6).keep([states, states])
    with pytest.raises(ValueError, match="length=-1"):
        SegmentMemory(-1)

"""Test that the functions behind the figures compute the numbers that the papers state."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import diagrams
import fixed_encodings
import pytest
import theorems
import torch
from laws.literal import heads_of, literal_embed, literal_layers, literal_logits, literal_softmax
from support_analysis import stack
from support_figures import cut
from torch import Tensor

from fairseq_posenc.analysis import cosine, heat_map, lengths, patterns, rank, trained
from fairseq_posenc.analysis.trained import Stack, told_apart
from fairseq_posenc.core.factors import FactoredBias
from fairseq_posenc.core.relative import RelativeBias, RelativeTable
from fairseq_posenc.encodings import specs
from fairseq_posenc.encodings.cope import Cope
from fairseq_posenc.encodings.learned import Learned
from fairseq_posenc.encodings.tupe import Tupe

# -- LFHC and GCDF -------------------------------------------------------------------------------------------


def test_gcdf_has_both_properties_and_sinusoids_neither() -> None:
    """Section A.2 calls the squared distance the divergence; equation (10) and the captions have the distance."""
    data = fixed_encodings.divergence(1024, 512)
    assert data["gcdf"][2:] == (0, 0, 0)
    assert data["xl"].not_increasing > 400
    assert data["xl"].not_attenuated == len(data["xl"].by_start) - 1  # phi(i + k, i) is constant
    slope = data["gcdf"].from_zero.square().diff()
    assert (slope > 0).all()
    assert (slope.diff() >= 0).nonzero().flatten().tolist() == [0]
    assert (data["gcdf"].by_start.square().diff() < 0).all()


def test_divergence_equals_its_closed_forms() -> None:
    """Sinusoids: d - 2 sum cos(w k). GCDF: the values of section A.2 at d = 512."""
    rows = fixed_encodings.rows_of("xl", torch.arange(6), 512)
    squared = (rows - rows[0]).square().sum(1)
    speeds = 10000 ** (-torch.arange(0, 512, 2).double() / 512)
    for k, expected in ((1, 13.7958), (5, 132.8067)):
        assert float(squared[k]) == pytest.approx(512 - 2 * float(torch.cos(speeds * k).sum()), rel=1e-9)
        assert float(squared[k]) == pytest.approx(expected, abs=5e-5)
    steps = fixed_encodings.divergence(1024, 512)["gcdf"].by_start[[0, 10, 100, 500]]
    assert steps.tolist() == pytest.approx([23.31, 4.12, 0.489, 0.063], rel=5e-3)


@pytest.mark.parametrize("dim", [8, 7])
def test_sines_and_cosines_alternate(dim: int) -> None:
    """Equations (6) and (17): R_2t is the sine and R_2t+1 the cosine of the same angle."""
    angles = torch.arange(-4, 5).double()[:, None] * 10000 ** (-torch.arange(0, dim, 2).double() / dim)
    expected = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :dim]
    torch.testing.assert_close(fixed_encodings.matrices(5, dim)["xl"], expected)


def test_gcdf_goes_from_zero_to_lambda() -> None:
    """The model projects R - lambda / 2; the figure shows R itself."""
    matrix = fixed_encodings.matrices(300, 16)["gcdf"]
    assert [float(matrix[:, 0].amin()), float(matrix[:, 0].amax())] == pytest.approx([0, 4], abs=1e-6)
    assert matrix[len(matrix) // 2].tolist() == pytest.approx([2.0] * 16)


@pytest.mark.parametrize("sizes", [[5], [1], [3, 3, 7, 1]])
def test_pairs_at_each_distance_are_counted(sizes: list[int]) -> None:
    item = lengths.data(sizes)
    pairs = {p: sum(1 for size in sizes for i in range(size) for j in range(size) if j - i == p) for p in range(7)}
    assert item.pairs.tolist() == [pairs[p] for p in range(max(sizes))]
    assert item.counts.sum() == len(sizes)


@pytest.mark.parametrize(("sizes", "text"), [([], "at least one text"), ([3, 0], "the lengths contain 0")])
def test_lengths_of_nothing_are_refused(sizes: list[int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lengths.data(sizes)


def test_lfhc_reads_wider_ranges_in_higher_layers() -> None:
    """Figure 1: with k = 2, layer 2 gives the distances 1 and 2 one row, and 3 and beyond the other."""
    rows = diagrams.ranges(clip=2, layers=2, columns=9)
    assert rows["shaw"].tolist() == [[-2, -2, -2, -1, 0, 1, 2, 2, 2]] * 2
    assert rows["lfhc"].tolist() == [[-2, -2, -2, -1, 0, 1, 2, 2, 2], [-2, -2, -1, -1, 0, 1, 1, 2, 2]]


# -- DIET ----------------------------------------------------------------------------------------------------


def test_positions_at_the_input_leave_rank_d_and_a_product_adds_its_rank() -> None:
    """Theorem 1: at most D, and D + d_p for random factors. Figure 8: at most D, and d_p, for the position part."""
    for width, added in ((None, 16), (24, 24), (32, 32)):
        at_input, per_head = theorems.ranks(columns=96, dim=64, heads=4, product=width)
        ranks = at_input.logits, per_head.logits, at_input.position, per_head.position
        assert [set(values.flatten().tolist()) for values in ranks] == [{16}, {16 + added}, {16}, {added}]


def test_the_effective_rank_keeps_99_percent_of_the_energy() -> None:
    assert [int(each) for each in rank.ranks(torch.diag(torch.tensor([98, 1.5, 0.5, 0]).sqrt()))] == [3, 2]


def test_gradients_of_tokens_and_positions_are_equal_at_the_input_only() -> None:
    """Theorem 2, for equation (5): L(g(X + P), y) with any g."""
    at_input, per_head = theorems.gradients(columns=9, dim=16, heads=2)
    assert at_input.difference == 0
    assert torch.equal(at_input.tokens, at_input.positions)
    assert at_input.tokens.min() > 0
    assert per_head.difference is None
    assert (per_head.positions / per_head.tokens - 1).abs().max() > 0.1
    lines = theorems.report([at_input, per_head])
    assert lines[0].endswith("differ by at most 0.")
    assert "times that of its token's" in lines[1]


def test_shift_scores() -> None:
    """1 if only j - i counts, 0 if the diagonals explain nothing."""
    columns = torch.arange(6).double()
    distances = columns - columns[:, None]
    by_key = (-1) ** columns.expand(6, 6)
    scores = patterns.shift_scores(torch.stack([distances**2, torch.ones(6, 6).double(), by_key]))
    assert scores[:2].tolist() == pytest.approx([1, 1])
    assert 0 <= float(scores[2]) < 0.3


def test_equal_vectors_have_cosine_one() -> None:
    item = stack("learned")
    assert cosine.data(item).cosines.abs().max() < 1
    with torch.no_grad():
        item.members["learned"].weight.copy_(torch.ones(12, 8))
    assert cosine.data(item).cosines.tolist() == pytest.approx([1.0] * 66)
    with pytest.raises(trained.FigureError, match="adds no vectors"):
        cosine.data(stack("m4"))


# -- the pictures --------------------------------------------------------------------------------------------

FIGURES = {
    "diagrams": diagrams.draw,
    "prior-matrices": lambda: fixed_encodings.draw_matrices(fixed_encodings.matrices(8, 6)),
    "divergence": lambda: fixed_encodings.draw_divergence(fixed_encodings.divergence(40, 16)),
    "gradients": lambda: theorems.draw_gradients(theorems.gradients(columns=9, dim=16, heads=2)),
    "rank": lambda: rank.draw(theorems.ranks(columns=96, dim=64, heads=4, product=24)),
    "cosine": lambda: cosine.draw([cosine.data(stack("learned"))] * 2),
    "heat map": lambda: heat_map.draw(heat_map.data(stack("diet-rel", heads=1))),
    "patterns": lambda: patterns.draw(patterns.data(stack("t5"), length=5)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_of_a_figure_is_cut_off(name: str) -> None:
    assert cut(FIGURES[name]()) == []


def test_figures_name_the_encoding() -> None:
    """Models of the same encoding also get the ends of their paths, as far as these differ."""
    named = [("a/learned/last.pt", "learned"), ("b/m4/last.pt", "m4"), ("c/m4/last.pt", "m4")]
    stacks = told_apart([replace(stack(encoding), name=f"results/{name}") for name, encoding in named])
    assert [item.title for item in stacks] == ["learned", "m4: b/m4/last.pt", "m4: c/m4/last.pt"]


@pytest.mark.parametrize("names", ["embeddings.0.0.weight embeddings.1.0.weight", "weight", "words.weight"])
def test_a_checkpoint_tells_the_number_of_words(names: str) -> None:
    """Without a dictionary, the models of all tasks are built with these numbers."""
    others = ["decoder.embed_tokens.embeddings.1.1.weight", "decoder.embed_positions.weight", "encoder.fc1.weight"]
    tables = [f"decoder.embed_tokens.{name}" for name in names.split()]
    assert trained._words({name: torch.zeros(3, 2) for name in [*tables, *others]}, "decoder") == 3 * len(tables)


# -- every encoding ------------------------------------------------------------------------------------------

#: Classes of encodings whose numbers a heat map shows.
WITH_TABLE = (RelativeBias, RelativeTable, FactoredBias, Learned, Cope, Tupe)


def compresses(name: str) -> bool:
    return any("compress" in member.hooks for member in stack(name).members.values())


def logits_without_tokens(item: Stack, length: int, segments: Tensor | None) -> Tensor:
    """Return the logits of layer 1 by the literal references, for tokens whose vectors are zeros, [h, n, n]."""
    encoding, attention = deepcopy(item.encoding).double(), deepcopy(item.attention[0]).double()
    batch = None if segments is None else segments[None]
    where = encoding.positions(torch.arange(length)[None] + 1, pad=0, boundaries=(0,), segments=batch)
    x = literal_embed(encoding, torch.zeros(1, length, encoding.stack.dim).double(), where)
    layers = literal_layers(encoding, 1, attention.project_query, attention.project_key, x)
    q, k = (heads_of(x @ projection.weight.t(), attention) for projection in (attention.q_proj, attention.k_proj))
    return literal_logits(layers, q, k, where)[0].detach()


@pytest.mark.parametrize("name", [name for name in specs() if not compresses(name)])
def test_the_position_part_is_that_of_the_logits_without_tokens(name: str) -> None:
    item = stack(name)
    segments = torch.tensor([0] * 6 + [1] * 6) if item.encoding.needs_segments else None
    expected = logits_without_tokens(item, 12, segments)
    if not expected.any():
        with pytest.raises(trained.FigureError, match="independent of the tokens"):
            trained.position_part(item, 1, 12, segments)
        return
    part = trained.position_part(item, 1, 12, segments).double()
    seen = torch.ones(12, 12, dtype=torch.bool)
    seen = seen.tril() if item.encoding.stack.causal else seen
    # GCDF's reference differs by a number per query, which has no effect on the weights.
    weights, expected_weights = (literal_softmax(logits, seen) for logits in (part, expected))
    torch.testing.assert_close(weights, expected_weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", specs())
def test_every_table_has_a_heat_map(name: str) -> None:
    item = stack(name)
    if not any(isinstance(member, WITH_TABLE) for member in item.members.values()):
        with pytest.raises(trained.FigureError, match="no table"):
            heat_map.data(item)
        return
    (shown,) = heat_map.data(item, layer=2, head=2, farthest=4)
    assert shown.values.shape[0] in (8, 9)
    assert (shown.values != 0).any() or not [*item.encoding.parameters()]  # fixed numbers may be 0 at short distances


@pytest.mark.parametrize("form", ["paper", "original"])
@pytest.mark.parametrize("has_cls", [False, True])
def test_the_heat_map_of_tupe_is_the_product_of_its_positions(form: str, has_cls: bool) -> None:
    item = stack("tupe", f"form={form},relative=false", has_cls=has_cls)
    (shown,) = heat_map.data(item, layer=2, head=2, farthest=6)
    reset = int(has_cls)  # row and column of [CLS], which reset replaces by scalars
    part = trained.position_part(item, 2, 12)[1]
    torch.testing.assert_close(shown.values[reset:, reset:], part[reset:, reset:])


def test_the_heat_map_shows_the_rows_of_the_layer_and_head() -> None:
    """Layer 2 has the second table or, if the encoding is active only there, the first one."""
    for options, table in (("", 1), (",layers=2", 0)):
        item = stack("m4", f"share=none,clip=5{options}")
        (shown,) = heat_map.data(item, layer=2, head=2, farthest=3)
        assert shown.first == (-3, 1)
        torch.testing.assert_close(shown.values, item.members["m4"].weight[table, 1, 2:9].detach())
    with pytest.raises(trained.FigureError, match="in layer 1"):
        heat_map.data(item, layer=1)


def test_layers_and_heads_that_do_not_exist_are_refused() -> None:
    item = stack("m4")
    for settings, text in (({"layer": 3}, "layers 1 to 2"), ({"head": 3}, "heads 1 to 2")):
        with pytest.raises(trained.FigureError, match=text):
            heat_map.data(item, **settings)
    with pytest.raises(trained.FigureError, match="does not read segments"):
        patterns.data(item, second_segment=4)

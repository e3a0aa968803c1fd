"""Test that the functions behind the figures compute the numbers that the papers state."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import diagrams
import fixed_encodings
import pytest
import torch
from laws.literal import heads_of, literal_embed, literal_layers, literal_logits, literal_softmax
from matplotlib.figure import Figure
from support_analysis import stack
from support_figures import cut
from torch import Tensor

from fairseq_posenc.analysis import cosine, gradients, heat_map, lengths, patterns, rank, trained
from fairseq_posenc.analysis.trained import Stack, told_apart
from fairseq_posenc.core.factors import FactoredBias
from fairseq_posenc.core.relative import RelativeBias, RelativeTable
from fairseq_posenc.encodings import specs
from fairseq_posenc.encodings.cope import Cope
from fairseq_posenc.encodings.learned import Learned
from fairseq_posenc.encodings.tupe import Tupe

# -- LFHC and GCDF -------------------------------------------------------------------------------------------


def test_gcdf_has_both_properties_and_sinusoids_neither() -> None:
    data = fixed_encodings.divergence(1024, 512)
    assert data["gcdf"][2:] == (0, 0, 0)
    sinusoids = data["xl"]
    assert sinusoids.not_increasing > 400
    assert sinusoids.not_attenuated == len(sinusoids.by_start) - 1  # phi(i + k, i) is constant


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
    assert fixed_encodings.divergence(32, 768)["xl"].by_start.tolist() == pytest.approx([14.1023] * 27, rel=1e-4)


@pytest.mark.parametrize("dim", [8, 7])
def test_sines_and_cosines_alternate(dim: int) -> None:
    """Equations (6) and (17): R_2t is the sine and R_2t+1 the cosine of the same angle."""
    matrix = fixed_encodings.matrices(5, dim)["xl"]
    angles = torch.arange(-4, 5).double()[:, None] * 10000 ** (-torch.arange(0, dim, 2).double() / dim)
    expected = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :dim]
    torch.testing.assert_close(matrix, expected)


def test_the_squared_distance_of_gcdf_has_the_properties_except_at_the_first_step() -> None:
    """Section A.2 calls the squared distance the divergence; equation (10) and the captions have the distance."""
    data = fixed_encodings.divergence(1024, 512)["gcdf"]
    slope = data.from_zero.square().diff()
    assert (slope > 0).all()
    assert (slope.diff() >= 0).nonzero().flatten().tolist() == [0]
    assert (data.by_start.square().diff() < 0).all()


def test_gcdf_goes_from_zero_to_lambda() -> None:
    """The model projects R - lambda / 2; the figure shows R itself."""
    matrix = fixed_encodings.matrices(300, 16)["gcdf"]
    assert float(matrix[:, 0].amin()) == pytest.approx(0, abs=1e-6)
    assert float(matrix[:, 0].amax()) == pytest.approx(4, abs=1e-6)
    assert matrix[len(matrix) // 2].tolist() == pytest.approx([2.0] * 16)


@pytest.mark.parametrize("sizes", [[5], [1], [3, 3, 7, 1]])
def test_pairs_at_each_distance_are_counted(sizes: list[int]) -> None:
    item = lengths.data(sizes)
    pairs = {p: sum(1 for size in sizes for i in range(size) for j in range(size) if j - i == p) for p in range(7)}
    assert item.pairs.tolist() == [pairs[p] for p in range(max(sizes))]
    assert item.counts.sum() == len(sizes)


def test_lengths_of_nothing_are_refused() -> None:
    for sizes, message in (([], "at least one text"), ([3, 0], "the lengths contain 0")):
        with pytest.raises(ValueError, match=message):
            lengths.data(sizes)


def test_lfhc_reads_wider_ranges_in_higher_layers() -> None:
    """Figure 1: with k = 2, layer 2 gives the distances 1 and 2 one row, and 3 and beyond the other."""
    rows = diagrams.ranges(clip=2, layers=2, columns=9)
    assert rows["shaw"].tolist() == [[-2, -2, -2, -1, 0, 1, 2, 2, 2]] * 2
    assert rows["lfhc"].tolist() == [[-2, -2, -2, -1, 0, 1, 2, 2, 2], [-2, -2, -1, -1, 0, 1, 1, 2, 2]]


# -- DIET ----------------------------------------------------------------------------------------------------


def test_positions_at_the_input_leave_rank_d_and_a_product_adds_its_rank() -> None:
    """Theorem 1: at most D, and D + d_p for random factors."""
    at_input, per_head = rank.random(columns=96, dim=64, heads=4, rank=24)
    assert set(at_input.logits.flatten().tolist()) == {16}
    assert set(per_head.logits.flatten().tolist()) == {16 + 24}
    assert set(at_input.position.tolist()) == {16}
    assert set(per_head.position.tolist()) == {24}


def test_the_effective_rank_keeps_99_percent_of_the_energy() -> None:
    matrix = torch.diag(torch.tensor([10.0, 10.0, 0.1, 0.0]))
    numerical, effective = rank.ranks(matrix)
    assert (int(numerical), int(effective)) == (3, 2)


def test_gradients_of_tokens_and_positions_are_equal_at_the_input() -> None:
    """Theorem 2, for equation (5): L(g(X + P), y) with any g."""
    item = stack("learned", dim=8, length=12)
    table = item.members["learned"].weight
    x = torch.randn(1, 12, 8, requires_grad=True)
    where = item.encoding.positions(torch.ones(1, 12, dtype=torch.long), pad=0)
    tensors = item.encoding.per_layer(where)
    out, _ = item.attention[0](item.encoding.embed(x, where), where, tensors[0])
    out.square().sum().backward()
    assert torch.equal(x.grad[0], table.grad)
    assert x.grad.abs().sum() > 0


def test_the_command_for_theorem_2_shows_equal_gradients_at_the_input_only() -> None:
    at_input, per_head = gradients.random(columns=9, dim=16, heads=2)
    assert at_input.difference == 0
    assert torch.equal(at_input.tokens, at_input.positions)
    assert at_input.tokens.min() > 0
    assert per_head.difference is None
    assert (per_head.positions / per_head.tokens - 1).abs().max() > 0.1
    lines = gradients.report([at_input, per_head])
    assert lines[0].endswith("differ by at most 0.")
    assert "times that of its token's" in lines[1]
    assert cut(gradients.draw([at_input, per_head])) == []


def test_the_position_part_has_a_lower_rank_at_the_input_if_the_factors_are_wider_than_a_head() -> None:
    """Figure 8: at most D at the input and d_p per head, so both are equal with the default d_p = D."""
    for width, expected in ((None, (16, 16)), (32, (16, 32))):
        items = rank.random(columns=48, dim=64, heads=4, rank=width)
        assert tuple(int(item.position.max()) for item in items if item.position is not None) == expected


def test_figures_name_the_encoding() -> None:
    """Models of the same encoding also get the ends of their paths, as far as these differ."""
    named = [("a/learned/last.pt", "learned"), ("b/m4/last.pt", "m4"), ("c/m4/last.pt", "m4")]
    stacks = told_apart([replace(stack(encoding), name=f"results/{name}") for name, encoding in named])
    assert [item.title for item in stacks] == ["learned", "m4: b/m4/last.pt", "m4: c/m4/last.pt"]


@pytest.mark.parametrize(
    "names",
    [
        ["decoder.embed_tokens.embeddings.0.0.weight", "decoder.embed_tokens.embeddings.1.0.weight"],
        ["decoder.embed_tokens.weight"],
        ["decoder.sentence_encoder.embed_tokens.words.weight"],
    ],
    ids=["adaptive", "plain", "classifier"],
)
def test_a_checkpoint_tells_the_number_of_words(names: list[str]) -> None:
    """Without a dictionary, the models of all tasks are built with these numbers."""
    others = ["decoder.embed_tokens.embeddings.1.1.weight", "decoder.embed_positions.weight", "encoder.fc1.weight"]
    assert trained._words({name: torch.zeros(3, 2) for name in [*names, *others]}, "decoder") == 3 * len(names)


def test_histograms_of_models_look_different() -> None:
    figure = cosine.draw([cosine.data(stack("learned"))] * 2)
    assert cut(figure) == []
    assert len({str(patch.get_linestyle()) for patch in figure.axes[0].patches}) == 2


def test_the_bounds_of_theorem_1_are_named() -> None:
    figure = rank.draw(rank.random(columns=96, dim=64, heads=4, rank=24))
    assert cut(figure) == []
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[2:] == ["D = 16, the width of a head", "D + $d_p$ = 40, the bound with a product of rank $d_p$ = 24"]


def test_the_ticks_of_heads_are_whole_numbers() -> None:
    item = stack("diet-rel", heads=1)
    for figure in (heat_map.draw(heat_map.data(item)), rank.draw(rank.random(columns=8, dim=8, heads=1))):
        assert [float(tick) for tick in figure.axes[0].get_xticks() if 0.5 < tick < 1.5] == [1]


def test_patterns_share_a_colour_bar_and_have_whole_ticks() -> None:
    figure = patterns.draw(patterns.data(stack("t5"), length=5))
    *panels, bar = figure.axes
    assert bar.get_ylabel() == "position part of the logit"
    assert len(panels) == 2
    assert all(float(tick).is_integer() for panel in panels for tick in (*panel.get_xticks(), *panel.get_yticks()))


@pytest.mark.parametrize(
    "figure",
    [
        diagrams.draw(),
        fixed_encodings.draw_matrices(fixed_encodings.matrices(8, 6)),
        fixed_encodings.draw_divergence(fixed_encodings.divergence(40, 16)),
    ],
    ids=["diagrams", "prior-matrices", "divergence"],
)
def test_nothing_of_the_drawings_in_the_documentation_is_cut_off(figure: Figure) -> None:
    assert cut(figure) == []


def test_shift_scores() -> None:
    """1 if only j - i counts, 0 if the diagonals explain nothing."""
    columns = torch.arange(6).double()
    distances = columns - columns[:, None]
    by_key = (-1) ** columns.expand(6, 6)
    scores = patterns.shift_scores(torch.stack([distances**2, torch.ones(6, 6).double(), by_key]))
    assert scores[:2].tolist() == pytest.approx([1, 1])
    assert 0 <= float(scores[2]) < 0.3


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


def test_the_position_part_of_diet_abs_is_its_product() -> None:
    item = stack("diet-abs")
    member = item.members["diet-abs"]
    expected = member.query[0] @ member.key[0].transpose(-1, -2)
    torch.testing.assert_close(trained.position_part(item, 2, 12), expected)


def test_the_position_part_of_learned_vectors_is_their_projected_product() -> None:
    item = stack("learned")
    vectors, layer = item.members["learned"].weight, item.attention[0]
    q, k = (vectors @ projection.weight.t() for projection in (layer.q_proj, layer.k_proj))
    expected = torch.stack([q[:, head] @ k[:, head].t() for head in (slice(0, 4), slice(4, 8))]) / 2
    torch.testing.assert_close(trained.position_part(item, 1, 12), expected)


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
    part = trained.position_part(stack("tupe", f"form={form},relative=false", has_cls=has_cls), 2, 12)[1]
    torch.testing.assert_close(torch.from_numpy(shown.values)[reset:, reset:], part[reset:, reset:])


def test_the_heat_map_shows_the_rows_of_the_layer_and_head() -> None:
    item = stack("m4", "share=none,clip=5")
    (shown,) = heat_map.data(item, layer=2, head=2, farthest=3)
    weight = item.members["m4"].weight
    assert shown.first == -3
    torch.testing.assert_close(torch.from_numpy(shown.values), weight[1, 1, 2:9].detach())


def test_the_heat_map_of_an_encoding_in_some_layers_shows_only_these() -> None:
    item = stack("m4", "share=none,clip=5,layers=2")
    (shown,) = heat_map.data(item, layer=2, head=2, farthest=3)
    torch.testing.assert_close(torch.from_numpy(shown.values), item.members["m4"].weight[0, 1, 2:9].detach())
    with pytest.raises(trained.FigureError, match="in layer 1"):
        heat_map.data(item, layer=1)


def test_equal_vectors_have_cosine_one() -> None:
    item = stack("learned")
    assert cosine.data(item).cosines.abs().max() < 1
    with torch.no_grad():
        item.members["learned"].weight.copy_(torch.ones(12, 8))
    assert cosine.data(item).cosines.tolist() == pytest.approx([1.0] * 66)
    with pytest.raises(trained.FigureError, match="adds no vectors"):
        cosine.data(stack("m4"))


def test_layers_and_heads_that_do_not_exist_are_refused() -> None:
    item = stack("m4")
    with pytest.raises(trained.FigureError, match="layers 1 to 2"):
        heat_map.data(item, layer=3)
    with pytest.raises(trained.FigureError, match="heads 1 to 2"):
        heat_map.data(item, head=3)
    with pytest.raises(trained.FigureError, match="does not read segments"):
        patterns.data(item, second_segment=4)

"""Test which row of a table belongs to a pair."""

from __future__ import annotations

import pytest
from torch import tensor

from fairseq_posenc.core.terms import Rows

CLS = 10  # the row of pairs whose query is [CLS]; the next row is that of other pairs whose key is [CLS]


@pytest.mark.parametrize(
    ("by_distance", "expected"),
    [
        (None, [[[CLS, CLS, CLS, CLS], [0, 1, CLS + 1, 3]], [[1, CLS + 1, 3, 4], [0, CLS + 1, 2, 3]]]),
        ([5, 5, 6, 7, 7], [[[CLS, CLS, CLS, CLS], [5, 5, CLS + 1, 7]], [[5, CLS + 1, 7, 7], [5, CLS + 1, 6, 7]]]),
    ],
)
def test_pairs_with_cls_have_rows_of_their_own(by_distance: list[int] | None, expected: list[list[list[int]]]) -> None:
    """Two queries are columns 2 and 3. [CLS] is column 2 in the first sample and column 1 in the second one."""
    rows = Rows(tensor(1), None if by_distance is None else tensor(by_distance), tensor(2), tensor([2, 1]), tensor(CLS))
    actual = [[[int(rows.at(tensor(b), tensor(i), tensor(j))) for j in range(4)] for i in range(2)] for b in range(2)]
    assert actual == expected


def test_without_cls_only_the_distance_counts() -> None:
    rows = Rows(tensor(1), None)
    assert [[int(rows.at(tensor(0), tensor(i), tensor(j))) for j in range(3)] for i in range(2)] == [
        [1, 2, 3],
        [0, 1, 2],
    ]

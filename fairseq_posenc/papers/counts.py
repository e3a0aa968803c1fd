"""What the papers print of the parameters of base models (12 layers, 12 heads, width 768, n = 512), METHODS.md 4."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A row of a paper's table: the encoding and options that it is about, and what stands there."""

    encoding: str
    options: str
    formula: str
    printed: str
    note: str = ""


_NO_TOTAL = "a total, without the input table of 393,216"

#: M1 to M4 (EMNLP 2020), M4M (its two texts), LFHC and GCDF, DIET (EMNLP 2021).
PUBLISHED = (
    Published("learned", "", "nd", "393K"),
    Published("shaw", "", "m(2n-1)d/h", "785K"),
    #: no count at n = 512 gives it: it needs 3.14M more than without, the rest of the paper's table none
    Published("shaw", "", "m(2n-1)d/h", "112.9M", "a total of the DIET paper (Table 6): unexplained"),
    Published("shaw", "share=none", "mh(2n-1)d", "147K", "the printed product leaves out d, which means d/h"),
    Published("raffel", "", "m(2n-1)", "12K"),
    Published("t5", "", "32h", "", "a stack"),
    Published("m1", "", "mn", "", "shared by heads"),
    Published("m1", "share=none", "mhn", ""),
    Published("m2", "", "m(2n-1)", "12K"),
    Published("m2", "share=none", "mh(2n-1)", "147K", "the text gives this number to Shaw, M3 and M4"),
    Published("m3", "", "m(2n-1)d/h", "785K"),
    Published("m3", "share=none", "mh(2n-1)d", "147K", "the printed product leaves out d, which means d/h"),
    Published("m4", "", "m(2n-1)d/h", "785K"),
    Published("m4", "share=none", "mh(2n-1)d", "147K", "the printed product leaves out d, which means d/h"),
    Published("m4", "reset=vector", "m(2n-1)d/h + 2md/h", "", "two more vectors a layer"),
    Published("m4m", "", "m(2n-1)d/h", "785K"),
    Published("learned+m4m", "", "nd + m(2n-1)d/h", "", "ABS+M4M"),
    Published("xl", "", "md^2 + 2md", "", "u and v per layer"),
    Published("xl", "biases=none", "md^2", "", "without u and v"),
    Published("gcdf", "", "md^2 + 2md", "", "u and v per layer"),
    Published("gcdf", "biases=none", "md^2", "", "without u and v"),
    Published("deberta", "", "m(2n-1)d/h + m(d/h)^2", "834K", "the paper counts one of the two matrices W^R, W^T"),
    Published("deberta", "tie_wr_wt=true", "m(2n-1)d/h + m(d/h)^2", "834K", "one matrix for both terms"),
    Published("deberta", "form=original", "2nd + 2m(d^2 + d)", "", "the authors' code: one table for all layers"),
    Published(
        "tupe", "reset=none", "mnd/h + m(d/h)^2 + m(2n-1)", "454K", "the paper counts one of U^Q, U^K; without reset"
    ),
    Published("tupe", "", "mnd/h + m(d/h)^2 + m(2n-1)", "454K", "the paper counts one of U^Q, U^K; with reset"),
    Published("tupe", "form=original", "(n+1)d + 2(d^2+d) + 2d + 33h", "", "the authors' code: TUPE-R; with reset"),
    Published(
        "tupe", "form=original,relative=false", "(n+1)d + 2(d^2+d) + 2d", "", "the authors' code: TUPE-A; with reset"
    ),
    Published("diet-rel", "", "mh(2n-1)", "109.9M", _NO_TOTAL),
    Published("diet-rel", "share=head-wise", "m(2n-1)", "109.7M", _NO_TOTAL),
    Published("diet-abs", "rank=128,share=none", "2mhn d_p", "128.6M", _NO_TOTAL),
    Published("diet-abs", "rank=128,share=layer-wise", "2hn d_p", "111.3M", _NO_TOTAL),
)

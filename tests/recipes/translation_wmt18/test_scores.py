"""Test the scores of the translation recipe: BLEU, BLEU by length, refused sentences and the paired bootstrap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("sacrebleu")

from sacrebleu.significance import PairedTest
from support_recipes import called

from recipes.lib.translation import bootstrap, score

REFERENCES = [f"the cat number {number} sat on the old mat" for number in range(30)]


def scored(folder: Path, translations: dict[int, str], *options: str) -> dict[str, object]:
    """Score translations of `REFERENCES`, whose sources have 1 to 30 words."""
    (folder / "test.de").write_text("".join(f"{line}\n" for line in REFERENCES))
    (folder / "test.en").write_text("".join("a " * number + "a\n" for number in range(30)))
    lines = [f"D-{n}\t-1\t{text}\nH-{n}\t-1\tx\n" for n, text in reversed(translations.items())]
    (folder / "out").write_text("".join(lines))
    words = ["--generated", folder / "out", "--text", folder, "--languages", "en", "de"]
    called(score, *words, "--translation", folder / "x.de", "--output", folder / "x", *options)
    return dict(json.loads((folder / "x").read_text()))


def test_scores_are_sacrebleus_and_the_interval_is_that_of_its_paired_test(tmp_path: Path) -> None:
    lines = [line.replace("old", "new") if number % 3 else line for number, line in enumerate(REFERENCES)]
    scores = scored(tmp_path, dict(enumerate(lines)))
    _, tested = PairedTest([("a", REFERENCES), ("b", lines)], {"BLEU": score.bleu_of("de")}, [REFERENCES], "bs")()
    assert scores["BLEU"] == pytest.approx(tested["BLEU"][1].score)
    assert scores["±"] == pytest.approx(tested["BLEU"][1].ci, rel=1e-4)
    assert "tok:13a" in str(scores["BLEU's signature"])
    assert 0 < scores["chrF"] < 100  # type: ignore[operator]
    assert (tmp_path / "x.de").read_text().splitlines() == lines
    assert score.tokenizer("zho") == "zh"


def test_bleu_by_length_and_who_refuses(tmp_path: Path) -> None:
    scores = scored(tmp_path, dict(enumerate(REFERENCES[:20])), "--bounds", "20,5")
    assert [round(scores[f"BLEU of {words} words"]) for words in ("1-5", "6-20")] == [100, 100]  # type: ignore[call-overload]
    assert scores["refused"] == scores["refused of 21+ words"] == 10
    assert not {"BLEU", "BLEU of 21+ words"} & scores.keys()
    assert (tmp_path / "x.de").read_text().endswith("\n" * 10)
    assert score.by_length({0: "a a", 1: "a a a"}, "2") == {"1-2": [0], "3+": [1]}
    with pytest.raises(SystemExit, match="31 sentences were translated, but the test set has 30"):
        scored(tmp_path, dict(enumerate([*REFERENCES, "x"])))


def test_each_model_is_compared_with_the_first_encoding_of_its_seed_and_direction(tmp_path: Path) -> None:
    """The models differ in the number of wrong sentences; `abs` refused sentences."""
    wrong = {("none", 1): 10, ("rope", 1): 1, ("same", 1): 10, ("abs", 1): 0, ("none", 2): 9, ("rope", 2): 9}
    (tmp_path / "scores").mkdir()
    (tmp_path / "translations").mkdir()
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES))
    table = ""
    for (encoding, seed), number in wrong.items():
        name = f"en-de.{encoding}.s{seed}"
        table += f"{name}\t{encoding}\t{seed}\ten-de\n"
        lines = ["no idea"] * number + REFERENCES[number:]
        (tmp_path / "translations" / f"{name}.de").write_text("".join(f"{line}\n" for line in lines))
        facts = {"refused": 3} if encoding == "abs" else {"BLEU": 1.0, bootstrap.KEY: 0.5}
        (tmp_path / "scores" / f"{name}.json").write_text(json.dumps(facts))
    (tmp_path / "models.tsv").write_text(table + "en-de.t5.s1\tt5\t1\ten-de\n")  # not scored
    called(bootstrap, "--run", tmp_path, "--reference", f"en-de={tmp_path}/ref", "--output", tmp_path / "p.json")
    p = json.loads((tmp_path / "p.json").read_text())
    assert p == {"en-de.rope.s1": p["en-de.rope.s1"], "en-de.same.s1": 1.0, "en-de.rope.s2": 1.0}
    assert p["en-de.rope.s1"] < 0.05
    read = {path.stem: json.loads(path.read_text()).get(bootstrap.KEY) for path in (tmp_path / "scores").iterdir()}
    assert {name: value for name, value in read.items() if value is not None} == p  # an earlier test's value is gone

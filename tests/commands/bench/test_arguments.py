"""Test what is measured by default, and which arguments are refused."""

from __future__ import annotations

import pytest

from fairseq_posenc.commands import bench
from fairseq_posenc.commands.bench import arguments, settings, targets
from fairseq_posenc.encodings import specs


def test_all_encodings_and_all_options_with_targets_are_measured_by_default() -> None:
    subjects = [str(subject) for subject in settings.default_subjects()]
    assert set(specs()) <= set(subjects)
    members = {member for family in targets.FAMILIES for member in family.members.split()}
    assert members <= set(subjects)
    assert len(subjects) == len(set(subjects))


def test_a_quick_run_has_at_least_forty_rows_with_targets() -> None:
    args = arguments.parsed(["--quick"])
    assert [shape.name for shape in args.shapes] == ["base"]
    assert args.parts == ["layer"]
    assert args.shapes[0].batches == ((128, 16), (512, 4))
    assert 4 * len(args.subjects) >= 40
    assert {"cope", "linformer", "diet-abs-lin"}.isdisjoint(subject.encoding for subject in args.subjects)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--encodings", "shwa"], "did you mean shaw"),
        (["--encodings", "shaw:klip=3"], "no option klip"),
        (["--encodings", "shaw", "shaw"], "twice"),
        (["--encodings", "segments+xpos"], "does not work in a decoder"),
        (["--shapes", "base,huge"], "'huge' is unknown"),
        (["--parts", "speed"], "'speed' is unknown"),
        (["--rounds", "0"], "at least 1"),
    ],
)
def test_unknown_names_are_refused(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        bench.main(argv)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err

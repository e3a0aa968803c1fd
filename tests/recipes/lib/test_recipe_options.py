"""Test the command line of recipes with a toy and the demo: options that run nothing, settings, refusals."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recipes.demo.__main__ import DEMO
from recipes.finetune_glue.__main__ import FINETUNE_GLUE
from recipes.finetune_squad.__main__ import FINETUNE_SQUAD
from recipes.finetune_xtreme.__main__ import FINETUNE_XTREME
from recipes.lib.command import main
from recipes.lib.package import CLOSED
from recipes.lib.plain import recipes
from recipes.lib.settings import as_arguments, load, read_preset, read_toml
from recipes.lib.values import Refused
from recipes.translation_wmt18.__main__ import TRANSLATION
from tests.toy_recipe import TOY, toy

ROOT = Path(__file__).resolve().parents[3]

# --- looking


@pytest.mark.parametrize("option", ["--help", "--list", "--dry-run"])
@pytest.mark.parametrize(
    "script", ["-m recipes.demo", "-m recipes.translation_wmt18", "-m recipes.pretrain_mlm", "tests/toy_recipe.py"]
)
def test_help_list_and_dry_run_need_neither_torch_nor_fairseq_nor_data(script, option, tmp_path):
    for name in ("torch", "fairseq", "numpy", "sacrebleu", "tqdm", "tabulate"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name}')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, *script.split(), option, "--output", str(tmp_path / "new")]
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert {"--help": "examples:", "--list": "open  ", "--dry-run": "# train:"}[option] in process.stdout
    assert not (tmp_path / "new").exists()


def test_help_shows_the_settings_of_the_preset_and_of_the_config(tmp_path, capsys):
    """Without --preset, --help shows the default preset."""
    config = tmp_path / "mine.toml"
    config.write_text("jobs = 3\n[train]\nmax-update = 20\n")
    cases: list[tuple[list[str], list[str]]] = [
        ([], ["the preset base", "time (default: 1).", "--train.max-update 250000 "]),
        (["--preset", "short"], ["the preset short", "time (default: 2).", "--train.max-update 600 "]),
        (["--preset=short", f"--config={config}"], [str(config), "time (default: 3).", "--train.max-update 20 "]),
    ]
    for words, parts in cases:
        with pytest.raises(SystemExit):
            main(TRANSLATION, ["--help", *words])
        shown = " ".join(capsys.readouterr().out.split())
        assert [part for part in [*parts, "--train.adam-betas '(0.9, 0.98)'"] if part not in shown] == [], words
    assert main(TRANSLATION, ["--help", "--preset", "shrot"]) == 2
    assert "no preset 'shrot'; did you mean short?" in capsys.readouterr().err


@pytest.mark.parametrize("recipe", [FINETUNE_GLUE, FINETUNE_SQUAD, FINETUNE_XTREME])
def test_fine_tuning_lists_stages_without_a_checkpoint_and_runs_nothing(recipe, tmp_path, capsys):
    for option, first in (("--list", "open  "), ("--dry-run", "# Run these commands")):
        assert main(recipe, [option, "--output", str(tmp_path / "new")]) == 0
        assert capsys.readouterr().out.startswith(first)
    assert main(recipe, ["--output", str(tmp_path / "new")]) == 2
    assert "--checkpoint is not given. Name a checkpoint" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("option", ["--list", "--dry-run"])
def test_a_reader_that_has_seen_enough_is_no_error(option, tmp_path):
    """`recipes/demo/run.sh --list | head -1` prints no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "tests/toy_recipe.py", option, "--output", str(tmp_path / "new")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, cwd=ROOT, env=environment, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (process.returncode, process.stderr) == (CLOSED, b"")


def test_run_sh_lists_stages_without_an_environment(tmp_path):
    """Use a Python without fairseq, in a checkout without .venv."""
    checkout = tmp_path / "a checkout"
    for name in ("recipes", "fairseq_posenc"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    command = [str(checkout / "recipes" / "demo" / "run.sh")]
    process = subprocess.run([*command, "--list"], env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    assert "open  corpus" in process.stdout


def test_the_dry_run_prints_the_chosen_commands_and_the_environment(tmp_path, capsys):
    assert toy(tmp_path / "a b", "--dry-run", "--stage", "table") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("in the root of the repository, with these environment variables: TOY=1")
    assert lines[1] == "# table"
    assert lines[-1].endswith(f"'{tmp_path}/a b/table'")
    assert sum(line.startswith("# ") for line in lines) == 2


# --- settings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sede", "3"], "unknown option --sede; did you mean --seed?"),
        (["--pre", "toy"], "unknown option --pre; did you mean --preset?"),
        (["--rate", "3"], "unknown option --rate; did you mean --train.rate?"),
        (["--trian.other", "3"], "unknown option --trian.other; did you mean --train.other?"),
        (["--trian.rate", "3"], "unknown option --trian.rate; did you mean --train.rate?"),
        (["--sizes.line", "3"], "unknown setting 'sizes.line'; did you mean sizes.lines?"),
        (["--preset", "tyo"], "no preset 'tyo'"),
        (["--seed", "one"], "--seed one: the value must be a whole number"),
        (["--mode", "fats"], "--mode 'fats': the value must be fast or slow"),
        (["--jobs", "0"], "--jobs 0: the value must be at least 1"),
        (["--seed"], "--seed: expected one argument"),
        (["--train.rate"], "--train.rate: this option needs a value"),
        (["data"], "unexpected argument 'data'"),
        (["--config", "no-such.toml"], "no-such.toml: No such file"),
    ],
)
def test_wrong_options_and_values_are_refused(words, message, tmp_path, capsys):
    assert toy(tmp_path / "out", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("recipe", [FINETUNE_GLUE, FINETUNE_SQUAD, FINETUNE_XTREME], ids=lambda recipe: recipe.name)
def test_a_setting_of_files_only_is_no_option(recipe, tmp_path, capsys):
    """The command that makes the models of a preset is a key of the TOML file only."""
    assert main(recipe, ["--checkpoint", "m4/checkpoint_last.pt", "--pretraining", "mine", "--dry-run"]) == 2
    assert "--pretraining: this setting cannot be given on the command line" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(recipe, ["--help"])
    assert "--pretraining" not in capsys.readouterr().out
    config = tmp_path / "mine.toml"
    config.write_text('pretraining = "mine.sh"\n')
    assert main(recipe, ["--config", str(config), "--checkpoint", "m4/checkpoint_last.pt", "--dry-run"]) == 0
    assert "# Pretrain the models of this preset with: mine.sh" in capsys.readouterr().out


def test_a_config_overrides_the_preset_and_the_command_line_overrides_both(tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text('word = "two"\nseed = 5\n[train]\nwarm-up = 10\n')
    settings = load(TOY, config=config, texts={"seed": "6", "train.fp16": "true"})
    assert (settings.word, settings.seed, settings.sizes) == ("two", 6, {"lines": 3})
    assert settings.train == {"rate": 0.5, "warm-up": 10, "fp16": True}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrod = 'x'", "mine.toml: unknown setting 'wrod'; did you mean word?"),
        ("word = 3", "--word 3: the value must be text"),
        ("seed = true", "--seed True: the value must be a whole number"),
        ("[sizes]\nline = 3", "did you mean sizes.lines?"),
        ("word = ", "mine.toml: the file is not valid TOML"),
    ],
)
def test_a_wrong_config_is_refused(text, message, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(Refused) as refused:
        load(TOY, config=tmp_path / "mine.toml")
    assert message in str(refused.value)


def test_a_preset_extends_a_preset_and_states_what_differs(tmp_path):
    (tmp_path / "base.toml").write_text('word = "one"\nleast = 1\n[train]\nrate = 0.5\nwarm-up = 3\n')
    (tmp_path / "wide.toml").write_text('extends = "base"\nleast = 2\n')
    (tmp_path / "slow.toml").write_text('extends = "wide"\n[train]\nrate = 0.1\nwarm-up = false\nfp16 = true\n')
    expected = {"word": "one", "least": 2, "train": {"rate": 0.1, "fp16": True}}
    assert read_preset(tmp_path / "slow.toml") == expected


def stated(preset):
    """Return the settings of a preset as triples: name, key in the table (empty if there is no table) and value."""
    tables = {name: value if isinstance(value, dict) else {"": value} for name, value in preset.items()}
    return [(name, key, value) for name, table in tables.items() for key, value in table.items()]


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_no_preset_states_a_value_that_it_inherits(recipe):
    for name in recipe.presets():
        own = read_toml(recipe.conf / f"{name}.toml")
        if "extends" in own:
            inherited = stated(read_preset(recipe.conf / f"{own['extends']}.toml"))
            assert [setting for setting in stated(own) if setting in inherited] == [], name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bse", r"slow\.toml: extends = 'bse' does not name a preset of the folder; did you mean base\?"),
        ("slow", r"slow\.toml: extends = 'slow' does not name a preset"),
        ("wide", r"wide\.toml: extends = 'slow': the presets slow and wide extend each other"),
    ],
)
def test_a_preset_that_extends_a_missing_preset_or_itself_is_refused(name, message, tmp_path):
    for preset, base in (("slow", name), ("wide", "slow"), ("base", "wide")):
        (tmp_path / f"{preset}.toml").write_text(f'extends = "{base}"\n')
    with pytest.raises(Refused, match=message):
        read_preset(tmp_path / "slow.toml")


def test_a_preset_that_lacks_a_setting_is_refused(tmp_path):
    (tmp_path / "toy.toml").write_text("least = 1")
    with pytest.raises(Refused, match=r"toy.toml: the setting 'word' is missing"):
        load(replace(TOY, conf=tmp_path))


def test_flags_become_arguments():
    assert as_arguments({"beam": 4, "cpu": True, "fp16": False, "lr": 0.005}) == "--beam 4 --cpu --lr 0.005".split()


def test_a_repeated_option_counts_or_is_refused(tmp_path, capsys):
    """Refuse a second value instead of silently ignoring the first one; a list takes the items of both."""
    both = ["--output", str(tmp_path), "--dry-run", "--encodings", "shaw[clip=4]", "--encodings", "rope,t5"]
    assert main(DEMO, both) == 0
    shown = capsys.readouterr().out
    assert [name for name in ("none", "shaw.clip=4", "rope", "t5") if f"# train:{name}\n" not in shown] == []
    for option, values in (("--word", "ab"), ("--train.rate", "12"), ("--stage", "xy")):
        assert toy(tmp_path, *(word for value in values for word in (option, value))) == 2
        assert capsys.readouterr().err == f"error: {option} is given twice. Give the option only once.\n"

"""Run a recipe of shell commands, which tests kill in every stage: `python tests/toy_recipe.py --output DIR`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recipes.lib.command import main
from recipes.lib.recipe import Plan, Recipe, Row, Settings, about
from recipes.lib.stages import Stage
from recipes.lib.values import Flags

CONF = Path(__file__).parent / "toy_conf"
VARIANTS = ("left", "right")


@dataclass(kw_only=True)
class Toy(Settings):
    word: str = field(metadata=about("what is written"))
    least: float = 0.0
    mode: Literal["fast", "slow"] = "fast"
    sizes: dict[str, int]
    train: Flags

    def variables(self) -> dict[str, str]:
        return {"TOY": "1"}


def shell(name: str, output: Path, script: str, *after: Stage, **options: bool) -> Stage:
    """Return a stage whose `script` writes "$1". Before, the file is half written and must not count as finished.

    TOY_SLOW names the stage that then waits to be killed. It is not a setting, so the command stays the same.
    """
    path = output / name.replace(":", ".")
    script = f'printf half > "$1"; [ "${{TOY_SLOW:-}}" != {name} ] || sleep 2; {script}'
    return Stage(name, ("sh", "-euc", script, "sh", str(path)), (path,), after, **options)


def make_plan(toy: Toy, output: Path, shown: str) -> Plan:
    def reads(stage: Stage) -> str:
        return f'cat {shlex.quote(str(stage.outputs[0]))} > "$1"'

    word = shlex.quote(toy.word)
    data = shell("data", output, f'echo {word} {toy.sizes["lines"]} > "$1"')
    chains = []
    for variant in VARIANTS:
        rate = f'echo {variant} rate={toy.train["rate"]} seed={toy.seed} >> "$1"'
        train = shell(f"train:{variant}", output, f"{reads(data)}; {rate}", data)
        chains.append([train, shell(f"score:{variant}", output, reads(train), train)])
    scores = [chain[-1] for chain in chains]
    files = " ".join(shlex.quote(str(score.outputs[0])) for score in scores)
    table = shell("table", output, f'cat {files} > "$1"', *scores)
    return Plan([[[data]], chains, [[table]]])


def results(toy: Toy, output: Path) -> list[Row]:
    return [{"line": line} for line in (output / "table").read_text(encoding="utf-8").splitlines()]


TOY = Recipe(
    name="toy",
    description="Copies a word about.",
    settings=Toy,
    conf=CONF,
    preset="toy",
    plan=make_plan,
    results=results,
    examples=("--word hello",),
)


def toy(output: Path, *options: str) -> int:
    return main(TOY, ["--output", str(output), *options])


if __name__ == "__main__":
    sys.exit(main(TOY, sys.argv[1:]))

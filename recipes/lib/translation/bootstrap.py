"""Compare each model with the first encoding's model of the same seed by sacrebleu's paired bootstrap test of BLEU.

The p-values are written to the scores of the models, too. sacrebleu's own command fails with `--format json`.
"""

import argparse
import json
from pathlib import Path

from sacrebleu.significance import PairedTest

from fairseq_posenc.core.writing import write_all_whole
from recipes.lib.lines import read
from recipes.lib.translation.score import bleu_of

KEY = "p (paired bootstrap)"


def p_values(translations: dict[str, list[str]], references: list[str], language: str) -> dict[str, float]:
    """Return the p-value of each system except the first, with which the others are compared.

    For equal translations, p is 1; sacrebleu reports 0.001, because no bootstrap sample has a larger difference.
    """
    first, *others = translations
    if not others:
        return {}
    _, scores = PairedTest(list(translations.items()), {"BLEU": bleu_of(language)}, [references], "bs")()
    values = dict(zip(translations, (result.p_value for result in scores["BLEU"]), strict=True))
    return {name: 1.0 if translations[name] == translations[first] else values[name] for name in others}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--run", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    option("--direction", required=True, metavar="SOURCE-TARGET", help="Direction whose models are compared.")
    option("--reference", type=Path, required=True, metavar="FILE", help="Raw references, one sentence per line.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the p-values.")
    options = parser.parse_args()
    language = options.direction.partition("-")[2]
    models = [line.split("\t") for line in read(options.run / "models.tsv")]
    p: dict[str, float] = {}
    for seed in dict.fromkeys(seed for _, _, seed, _ in models):
        names = [name for name, _, of, direction in models if (of, direction) == (seed, options.direction)]
        paths = {name: options.run / "scores" / f"{name}.json" for name in names}
        scored = {name: json.loads(path.read_text()) for name, path in paths.items() if path.is_file()}
        whole = [name for name, scores in scored.items() if "bleu" in scores]
        if names[0] in whole:
            files = {name: options.run / "translations" / f"{name}.{language}" for name in whole}
            lines = {name: list(read(file)) for name, file in files.items()}
            tested = p_values(lines, list(read(options.reference)), language)
            write_all_whole({paths[name]: json.dumps(scored[name] | {KEY: tested[name]}) for name in tested})
            p |= tested
    write_all_whole({options.output: json.dumps(p, indent=1)})


if __name__ == "__main__":
    main()

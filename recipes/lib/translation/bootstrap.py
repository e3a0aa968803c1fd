"""Compare each model with the first encoding's model of the same seed by sacrebleu's paired bootstrap test of BLEU.

The p-values are written to a file and to the scores of the models. (sacrebleu's own command fails with `-f json`.)
"""

import argparse
import json
from pathlib import Path

from sacrebleu.significance import PairedTest

from fairseq_posenc.core.writing import write_whole
from recipes.lib.lines import read
from recipes.lib.runs import finished, models
from recipes.lib.translation.score import bleu_of

KEY = "p of the paired bootstrap"


def p_values(translations: dict[str, list[str]], references: list[str], language: str) -> dict[str, float]:
    """Return the p-value of each system except the first, with which the others are compared.

    For equal translations, p is 1; sacrebleu reports 0.001, because no bootstrap sample has a larger difference.
    """
    first, *others = translations
    if not others:
        return {}
    _, scores = PairedTest(list(translations.items()), {"BLEU": bleu_of(language)}, [references], "bs")()
    values = dict(zip(translations, (result.p_value for result in scores["BLEU"]), strict=True))
    return {name: 1.0 if translations[name] == translations[first] else round(values[name], 4) for name in others}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--run", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    text = "Raw references of a direction, one sentence per line; the option may be repeated."
    option("--reference", action="append", required=True, metavar="DIRECTION=FILE", help=text)
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the p-values.")
    options = parser.parse_args()
    references = dict(word.split("=", 1) for word in options.reference)
    first = models(options.run)[0].encoding
    scored = [model for model in finished(options.run) if "BLEU" in model.scores]
    p: dict[str, float] = {}
    for baseline in (model for model in scored if model.encoding == first):
        group = [model for model in scored if (model.item, model.seed) == (baseline.item, baseline.seed)]
        language = baseline.item.partition("-")[2]
        names = [baseline.name, *(model.name for model in group if model != baseline)]
        lines = {name: list(read(options.run / "translations" / f"{name}.{language}")) for name in names}
        p |= p_values(lines, list(read(Path(references[baseline.item]))), language)
    for model in scored:  # without the p-values of an earlier test, which may have had another first encoding
        scores = {key: value for key, value in model.scores.items() if key != KEY}
        scores |= {KEY: p[model.name]} if model.name in p else {}
        write_whole(options.run / "scores" / f"{model.name}.json", json.dumps(scores, indent=1, ensure_ascii=False))
    write_whole(options.output, json.dumps(p, indent=1))


if __name__ == "__main__":
    main()

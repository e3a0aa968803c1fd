"""`python -m fairseq_posenc docs`: write a page for every encoding and an index of them, from the registry's facts.

The command also fills the generated blocks of hand-written pages (see `choosing.py`), and writes a file with facts
about the encodings, which recipes read before torch is installed.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ..core.arguments import Parser
from ..core.options import describe, fill
from ..core.writing import write_whole
from ..encodings import get, names, spec_of
from ..encodings.building import form_of
from ..encodings.facts import acts_in_layers, constant, declared
from . import choosing, notebook, whole_models
from .choosing import CAPABILITIES
from .params import rows

TRAINING = "training.md"
KNOWN = "recipes/lib/encodings.json"
#: Explains the values of the options that many encodings have.
OPTIONS = """\
`share` says which layers and heads share a table. With `none`, each head of each layer has a table of its own. With
`head-wise`, the heads of a layer share a table. With `layer-wise`, heads with the same number share a table across all
layers. With `all`, there is a single table. `init` says how a table is initialised: with normally distributed numbers
(`normal`), with zeros (`zeros`), with ones (`ones`), or as in Glorot and Bengio 2010 (`xavier-uniform`). `extend` says
what happens if a sequence is longer than the table: `error` refuses it, `repeat` reads the table again from its start,
and `interpolate` stretches the table."""
#: Heading of the section about the option that all encodings have.
LAYERS = "Active in some layers"
SCHEDULES = """\
Every encoding that acts in the layers of a stack has the option `layers`, which says in which layers it is active. In
layers where no encoding is active, attention is computed as with `none`. An encoding that adds vectors at the input,
such as `learned`, does not have this option. Layers are counted from 1, separately in the encoder and in the decoder.
Without the option, an encoding is active in all layers.

| value | active layers |
|---|---|
| `layers=4` | 4 |
| `layers=4:8:12` | 4, 8 and 12 |
| `layers=1-4`, `layers=1-4:9` | 1 to 4; 1 to 4 and 9 |
| `layers=every-4` | 4, 8, 12 and so on |
| `layers=every-4-skip` | all except 4, 8, 12 and so on |

If the value names no layer, names a layer twice, or names a layer that does not exist, an error says what is wrong. A
value with `every` must leave out at least one layer. If a table normally has an entry for each layer, it has entries
for the active layers only. The layer number in the formula of `lfhc` is still the number of the layer in the whole
stack.

In a composition, write the option into the brackets of its encoding: `--pos-enc 'learned+t5[layers=1-4]'`.
Encodings that cannot be combined in one layer can be combined in different layers, for example `rope` and `m4m`. An
encoding can also occur several times with different options, if each layer has only one of them. For example, the
second `rope` is called `rope-2`, in `--pos-enc`, in its options and in the names of its parameters; a third one is
called `rope-3`.

Three published language models can serve as examples. The examples set only the position encoding; the models also
differ from this plugin's models in other ways, such as attention that is limited to a window.

- SmolLM3 and Llama 4 use RoPE, but every 4th layer has no positions: `--pos-enc 'rope[layers=every-4-skip]'`.
- Gemma 3 uses RoPE. In every 6th layer, attention is global and the base of RoPE is 1,000,000; in all other layers,
  attention is local and the base is 10,000:
  `--pos-enc 'rope[layers=every-6-skip]+rope-2[layers=every-6,base=1000000]'`."""


WHOLE = """\
Each model is BERT-base with a masked-LM head and n = 512 positions. The vocabulary of each model has 30,522 pieces or,
in the columns for 100 languages, 120,000 pieces. The columns *printed* show the numbers in Table 6 of the DIET paper.
The columns *more* show by how many percent a model is larger than the model with learned positions."""


def pages() -> dict[str, str]:
    """Return the Markdown of each page, keyed by file name."""
    counted = rows()
    by_encoding = {
        f"{name}.md": page(name, [row for row in counted if row["encoding"] == spec_of(name)]) for name in names()
    }
    return {"index.md": index(counted), **by_encoding}


def page(name: str, counted: list[dict[str, Any]]) -> str:
    cls = get(name)
    facts = cls.facts
    parts = [
        f"# `{name}`: {facts.title}",
        f"$${facts.formula}$$",
        f"{facts.paper}, {facts.equation}",
        inspect.cleandoc(cls.__doc__ or ""),
        *_forms(name),
        *([facts.notes] if facts.notes else []),
        "## What it can do",
        "\n".join(f"- {text}: {_answer(name, key)}" for key, text in CAPABILITIES.items()),
        "## Options",
        _options(describe(cls.Options)),
        *(
            [f"The option [`layers`](index.md#{_anchor(LAYERS)}) limits the encoding to some layers."]
            * acts_in_layers(name)
        ),
        "## Parameters",
        f"Number of parameters: {_sentence(facts.count)} "
        "Here m is the number of layers, h the number of heads, d the width and n the maximum length.",
        "At base size (12 layers, 12 heads, width 768, length 512):",
        _counts(counted),
        *_no_decay(name),
        *_without_effect(name),
    ]
    return "\n\n".join(parts) + "\n"


def index(counted: list[dict[str, Any]]) -> str:
    """Return the index page, with a table of the encodings and a table of the parameters of whole models."""
    head = ["encoding", "method", "paper", *CAPABILITIES.values()]
    lines = []
    for name in names():
        facts = get(name).facts
        capabilities = declared(spec_of(name))
        marks = ["yes" if capabilities.get(key) else "" for key in CAPABILITIES]
        lines.append([f"[`{name}`]({name}.md)", facts.title, facts.paper, *marks])
    table = tabulate(lines, head, tablefmt="github", disable_numparse=True)
    note = "`python -m fairseq_posenc docs` writes this page; do not edit it. The table shows the default options."
    which = f"[Which encoding to use](../{choosing.PAGE}) shows the results of the papers and our measurements."
    more = "[Speed and memory](../speed.md) shows what each encoding costs, on a CPU and on a GPU."
    parts = ["# The encodings", which, note, table, more, "## Options", choosing.options_table(), OPTIONS]
    parts += [f"## {LAYERS}", SCHEDULES]
    parts += ["## Parameters of whole models", WHOLE, whole_models.text(counted, "pipe"), whole_models.ROUNDED]
    return "\n\n".join(parts) + "\n"


def known() -> str:
    """Return JSON for recipes: whether each encoding works in decoders and encoders and with a memory of segments, and
    its default options.
    """
    rows = []
    for name in names():
        defaults = {option["name"]: option["default"] for option in describe(get(name).Options)}
        capabilities = declared(spec_of(name))
        facts = {key: capabilities[key] for key in ("causal", "bidirectional", "memory")} | {"options": defaults}
        rows.append(f" {json.dumps(name)}: {json.dumps(facts)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _answer(name: str, key: str) -> str:
    return "yes" if declared(spec_of(name)).get(key) else "no"


def _forms(name: str) -> list[str]:
    """Return the docstrings of the classes that implement the choices of an option, if there are several classes."""
    texts = []
    for option in describe(get(name).Options):
        forms = {choice: _form(name, {option["name"]: choice}) for choice in option["choices"]}
        for choice, form in forms.items() if len(set(forms.values()) - {None}) > 1 else ():
            texts.append(f"`{option['name']}={choice}`: {inspect.cleandoc(getattr(form, '__doc__', None) or '')}")
    return texts


def _form(name: str, options: dict[str, str]) -> type | None:
    """Return the class that implements the encoding with these options; None if they need further options."""
    cls = get(name)
    try:
        return form_of(cls, fill(cls.Options, options))
    except ValueError:
        return None


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _options(options: list[dict[str, Any]]) -> str:
    if not options:
        return "None."
    lines = []
    for option in options:
        default = "unset" if option["default"] is None else str(option["default"])
        help = option["help"].replace("|", r"\|")
        lines.append([f"`{option['name']}`", default, ", ".join(option["choices"]) or option["range"], help])
    return tabulate(
        lines, ["option", "default", "choices or range", "meaning"], tablefmt="github", disable_numparse=True
    )


def _counts(counted: list[dict[str, Any]]) -> str:
    names = {"printed": "printed in the papers", "time": "time", "memory": "memory"}
    names |= {"printed memory": "memory in the papers"} if any(row["printed memory"] for row in counted) else {}
    names |= {"note": "note"}
    lines = []
    for row in counted:
        options = f"`{row['options']}`" if row["options"] else "defaults"
        lines.append([options, f"{row['count']:,}", *(row[name] for name in names)])
    head = ["options", "parameters", *names.values()]
    return tabulate(lines, head, tablefmt="pipe", disable_numparse=True, colalign=choosing.ONE_NUMBER)


def _no_decay(name: str) -> list[str]:
    parameters = ", ".join(f"`{parameter}`" for parameter in get(name).no_decay)
    text = (
        f"Weight decay would pull {parameters} to values at which attention is uniform or all gradients through the "
        f"logits are zero. `--pos-enc-no-decay` excludes {parameters} from weight decay."
    )
    return [text] if parameters else []


def _without_effect(name: str) -> list[str]:
    lines = []
    for part, setting, stacks in constant(name):
        where = ", ".join([*([f"`{setting}`"] if setting else []), *stacks])
        lines.append(f"- `{part}`" + (f" ({where})" if where else ""))
    text = (
        "The softmax cancels a number that is added to all logits of a query. The following parameters only add such a "
        "number, so they get no gradient:"
    )
    return ["## Parameters without effect", text, "\n".join(lines)] if lines else []


def main(argv: Sequence[str]) -> int:
    """Write the generated pages, and fill the generated blocks of hand-written pages.

    Return 1 if a block cannot be filled, and 0 otherwise.
    """
    parser = Parser(
        prog="python -m fairseq_posenc docs",
        description="Write a page for every encoding and an index of these pages. Also update the following files if "
        f"they exist: the notebook of {notebook.PAGE}, {KNOWN}, and the generated blocks of {choosing.PAGE}, "
        f"{TRAINING} and README.md.",
        epilog="Example: python -m fairseq_posenc docs --output docs/encodings",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("docs/encodings"),
        metavar="DIR",
        help="Folder of the pages (default: %(default)s).",
    )
    args = parser.parse_args(argv)
    folder = args.output
    print(f"{folder}: wrote {_write(folder)} pages")
    top = folder.parent.parent
    if (top / KNOWN).exists():
        write_whole(top / KNOWN, known())
    if (folder.parent / notebook.PAGE).exists():
        text = (folder.parent / notebook.PAGE).read_text(encoding="utf-8")
        write_whole((folder.parent / notebook.PAGE).with_suffix(".ipynb"), notebook.of_page(text))
    pages_by_hand = (folder.parent / choosing.PAGE, folder.parent / TRAINING, top / "README.md")
    return max([_fill(page) for page in pages_by_hand if page.exists()], default=0)


def _fill(page: Path) -> int:
    try:
        choosing.write(page)
    except ValueError as error:
        print(f"{page}: {error}", file=sys.stderr)
        return 1
    print(f"docs: updated the generated blocks of {page}")
    return 0


def _write(folder: Path) -> int:
    """Write the pages and return their number. Delete the pages of encodings that are no longer registered."""
    written = pages()
    for path in folder.glob("*.md"):
        if path.name not in written and _is_ours(path):
            path.unlink()
    for name, text in written.items():
        write_whole(folder / name, text)
    return len(written)


def _is_ours(path: Path) -> bool:
    """Return whether this command wrote the file, as its first line shows.

    A file with another first line may belong to the user.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().startswith(f"# `{path.stem}`:")

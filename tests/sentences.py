"""Print random sentences of the project, so that a reader with fresh eyes can judge its English.

    python tests/sentences.py --seed 7

Half of them are help texts, errors and log lines; the other half are pages and docstrings. Each line begins with the
place of the sentence. The same seed prints the same sentences as long as the texts do not change.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sentencex import segment

ROOT = Path(__file__).resolve().parents[1]
CODE = ("fairseq_posenc", "recipes", "data-bin-scripts")
#: Functions whose text arguments a user reads, in addition to every call in a `raise` statement.
SPEAKING = {"about", "of_files", "option", "error", "warning", "info", "warn", "warning_once", "line", "print"}
HELPFUL = {"help", "description", "epilog"}  # keyword arguments of argparse and of dataclass fields
SHORTEST = 3  # words; less is a name or a label
#: Minimum number of words of texts outside of such calls, for example in constants, that count as sentences.
LONG = 6
SMALL_WORDS = {"a", "the", "is", "are", "of", "for", "to", "in", "not"}  # no sentence is without any of them


class Sentence(NamedTuple):
    place: str  # file:line, relative to the repository
    text: str


def spoken() -> Iterator[Sentence]:
    """Yield the sentences of help texts, errors and log lines."""
    for path, tree in _modules():
        texts = [text for node in ast.walk(tree) for text in _spoken_by(node)]
        known = {id(part) for text in texts for part in ast.walk(text)} | set(_docstrings(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr) and id(node) not in known:
                known |= {id(part) for part in ast.walk(node)}
                texts += [node] if _is_long(node) else []
        others = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        texts += [node for node in others if id(node) not in known and _is_long(node)]
        for text in texts:
            yield from _sentences(path, text.lineno, _written(text))


def explained() -> Iterator[Sentence]:
    """Yield the sentences of pages and docstrings."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield from _prose(page)
    for path, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node)
                line = 1 if isinstance(node, ast.Module) else node.lineno
                for paragraph in (docstring or "").split("\n\n"):
                    if "::" not in paragraph and not paragraph.startswith("    "):  # a command or a table
                        yield from _sentences(path, line, re.sub(r"^\w+:\n", "", paragraph))


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, ast.parse(path.read_text("utf-8"))


def _spoken_by(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the texts that a raise statement or a call shows to a user."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from filter(_is_text, node.exc.args)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in SPEAKING:
            yield from filter(_is_text, node.args)
        yield from (word.value for word in node.keywords if word.arg in HELPFUL and _is_text(word.value))


def _docstrings(tree: ast.Module) -> Iterator[int]:
    """Yield the ids of the nodes that are docstrings or other texts which stand alone as a statement."""
    yield from (id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr))


def _is_long(node: ast.expr) -> bool:
    """Tell whether a text is long enough to be a sentence, and no list of words or commands."""
    text = _written(node)
    words = re.findall(r"[A-Za-z]{2,}", text)
    return len(words) >= LONG and not SMALL_WORDS.isdisjoint(words)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _written(node: ast.expr) -> str:
    """Return a text with `{...}` for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{...}" for part in node.values)


def _prose(page: Path) -> Iterator[Sentence]:
    """Yield the sentences of a page, without its code, tables and headings."""
    paragraph, start, code = list[str](), 1, False
    for number, line in enumerate([*page.read_text("utf-8").splitlines(), ""], start=1):
        code ^= line.lstrip().startswith("```")
        if code or not line.strip() or line.lstrip().startswith(("|", "#", "```", "!", "<")):
            yield from _sentences(page, start, " ".join(paragraph))
            paragraph, start = [], number + 1
        else:
            paragraph.append(line.strip())


def _sentences(path: Path, line: int, text: str) -> Iterator[Sentence]:
    place = f"{path.relative_to(ROOT)}:{line}"
    segmented = list(segment("en", " ".join(text.split())))
    # The segmenter ends a sentence at the dot of `train.*` or `wiki.{train,test}`: join what follows again.
    whole = re.sub(r"\n(?=[a-z*{])", "", "\n".join(segmented))
    for sentence in whole.split("\n"):
        if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= SHORTEST:
            yield Sentence(place, sentence.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="Random seed that chooses the sentences.")
    parser.add_argument("--number", type=int, default=100, metavar="N", help="Sentences of each half (default: 100).")
    parser.add_argument("--under", default="", metavar="PATH", help="Take only files whose path begins with PATH.")
    arguments = parser.parse_args()
    for title, sentences in (("Help texts and errors", spoken()), ("Pages and docstrings", explained())):
        known = sorted(
            {sentence.text: sentence for sentence in sentences if sentence.place.startswith(arguments.under)}.values()
        )
        chosen = random.Random(arguments.seed).sample(known, min(arguments.number, len(known)))
        print(f"## {title}: {len(chosen)} of {len(known)}")
        for number, sentence in enumerate(chosen, start=1):
            print(f"{number:3}. {sentence.place}: {sentence.text}")


if __name__ == "__main__":
    main()

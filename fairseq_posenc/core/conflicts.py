"""Check that the encodings of a composition can be combined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .base import PositionEncoding
from .refusal import InputError

CURE = "use only one of them, or let them be active in different layers (option layers)"


def refuse_conflicts(members: Mapping[str, PositionEncoding], layers: int) -> None:
    """Raise ValueError if encodings that are active in the same layer cannot be combined.

    Two encodings cannot be combined if both replace, change or scale the product of query and key, or if one encoding
    compresses the keys that the other needs. An encoding that adapts biases needs another encoding with a bias, and
    cannot be combined with a term that depends on the content.

    Args:
        members: The encodings by name.
        layers: Number of layers of the stack.
    """
    for index in range(1, layers + 1):
        for problem in _problems({name: member for name, member in members.items() if member.rank(index)}):
            raise InputError(f"--pos-enc: {problem}")


def _problems(members: Mapping[str, PositionEncoding]) -> Iterator[str]:
    """Yield the reasons why the encodings of a layer cannot be combined, and what to do."""

    def having(*hooks: str) -> list[str]:
        return [name for name, member in members.items() if set(hooks) & set(member.hooks)]

    scores, projecting = having("scores"), having("project_q", "project_k")
    scaling = [name for name, member in members.items() if member.scale is not None]
    alike = {
        "replace the product of query and key": scores,
        "rotate the keys": having("project_k"),
        "change the queries": projecting,
        "set the scale of the content product": scaling,
    }
    for what, names in alike.items():
        if len(names) > 1:
            yield f"{' and '.join(names)} both {what}; {CURE}"
    if scores and projecting:
        yield f"{scores[0]} replaces the product of query and key, which {projecting[0]} needs; {CURE}"
    for scale in scaling:
        for what, others in (("changes the queries q", projecting), ("replaces this product", scores)):
            if others and others != [scale]:
                yield f"{scale} sets the scale of the content product q·k, but {others[0]} {what}; {CURE}"
    yield from _problems_of_windows(members)
    for name in having("compress"):
        for other in members:
            if other != name and set(members[other].hooks) - {"embed"}:
                text = f"{name} compresses the keys to slots without positions, but {other} needs positions of keys"
                yield f"{text}; {CURE}"
    for name in having("adapt"):
        for other in having("content_bias"):
            text = f"{name} adapts biases that do not depend on the content, but the term of {other} depends on it"
            yield f"{text}; {CURE}"
        if not having("bias"):
            others = [other for other in members if other != name]
            text = f"{' and '.join(others)} adds none" if others else "there is no other encoding in the same layer"
            example = "+".join([*others, members[name].companion, name])
            yield f"{name} adapts the bias of another encoding, but {text}; write {example}"


def _problems_of_windows(members: Mapping[str, PositionEncoding]) -> Iterator[str]:
    windows = {name: member.options.window for name, member in members.items() if member.options.window}
    if len(set(windows.values())) > 1:
        texts = " and ".join(f"{name} has window={window}" for name, window in windows.items())
        yield f"{texts} in the same layer: set the same window, or leave one of them out"
    for name, member in members.items() if windows else ():
        window = max(windows.values())
        try:
            member.check_window(window)
        except InputError as error:
            yield f"{name}: {error}"
        if "compress" in member.hooks:
            text = f"window={window} does not work with {name}, whose compressed keys have no positions"
            yield f"{text}: leave the option window out"

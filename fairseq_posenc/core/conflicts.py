"""Check that the encodings of a composition can be combined."""

from __future__ import annotations

from collections.abc import Mapping

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
        _refuse_in_layer({name: member for name, member in members.items() if member.rank(index)})


def _refuse_in_layer(members: Mapping[str, PositionEncoding]) -> None:

    def having(*hooks: str) -> list[str]:
        return [name for name, member in members.items() if set(hooks) & set(member.hooks)]

    scores, projecting, turning = having("scores"), having("project_q", "project_k"), having("project_k")
    scaling = [name for name, member in members.items() if member.scale is not None]
    if len(scores) > 1:
        raise InputError(f"--pos-enc: {' and '.join(scores)} both replace the product of query and key; {CURE}")
    if scores and projecting:
        text = f"{scores[0]} replaces the product of query and key, which {projecting[0]} needs"
        raise InputError(f"--pos-enc: {text}; {CURE}")
    if len(turning) > 1:
        raise InputError(f"--pos-enc: {' and '.join(turning)} both rotate the keys; {CURE}")
    if len(projecting) > 1:
        raise InputError(f"--pos-enc: {' and '.join(projecting)} both change the queries; {CURE}")
    if len(scaling) > 1:
        raise InputError(f"--pos-enc: {' and '.join(scaling)} both set the scale of the content product; {CURE}")
    for scale in scaling:
        others = [name for name in projecting if name != scale]
        if others:
            text = f"{scale} sets the scale of the content product q·k, but {others[0]} changes the queries q"
            raise InputError(f"--pos-enc: {text}; {CURE}")
    if scaling and scores and scaling != scores:
        text = f"{scaling[0]} sets the scale of the content product q·k, but {scores[0]} replaces this product"
        raise InputError(f"--pos-enc: {text}; {CURE}")
    windows = {name: member.options.window for name, member in members.items() if member.options.window}
    if len(set(windows.values())) > 1:
        texts = " and ".join(f"{name} has window={window}" for name, window in windows.items())
        raise InputError(f"--pos-enc: {texts} in the same layer: set the same window, or leave one of them out")
    for name, member in members.items() if windows else ():
        try:
            member.check_window(max(windows.values()))
        except InputError as error:
            raise InputError(f"--pos-enc: {name}: {error}") from None
    for name in having("compress"):
        if windows:
            text = f"window={max(windows.values())} does not work with {name}, whose compressed keys have no positions"
            raise InputError(f"--pos-enc: {text}: leave the option window out")
        others = [other for other in members if other != name and set(members[other].hooks) - {"embed"}]
        if others:
            text = f"{name} compresses the keys to slots without positions, but {others[0]} needs positions of keys"
            raise InputError(f"--pos-enc: {text}; {CURE}")
    for name in having("adapt"):
        for other in having("content_bias"):
            text = f"{name} adapts biases that do not depend on the content, but the term of {other} depends on it"
            raise InputError(f"--pos-enc: {text}; {CURE}")
        if not having("bias"):
            others = [other for other in members if other != name]
            text = f"{' and '.join(others)} adds none" if others else "there is no other encoding in the same layer"
            example = "+".join([*others, members[name].companion, name])
            raise InputError(f"--pos-enc: {name} adapts the bias of another encoding, but {text}; write {example}")

"""A second reader of HLO text, written with loops over characters: slow, simple, and sharing nothing with ours."""

from __future__ import annotations

COLLECTIVE_OPCODES = (
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
    "cross-replica-sum",
)
STARTS = tuple(f"{opcode}-start" for opcode in COLLECTIVE_OPCODES)


def without_strings_and_comments(text: str) -> str:
    """Blank what stands in strings and comments."""
    out: list[str] = []
    position = 0
    while position < len(text):
        two = text[position : position + 2]
        if two in ("/*", "//"):
            stop = text.find("*/", position + 2) + 2 if two == "/*" else text.find("\n", position)
            if stop < 2:
                stop = len(text)
            out.append(" " * (stop - position))
            position = stop
        elif text[position] in "\"'":
            quote = text[position]
            stop = position + 1
            while stop < len(text) and text[stop] != quote and (quote == '"' or text[stop] != "\n"):
                stop += 2 if text[stop] == "\\" else 1
            stop = min(stop + 1, len(text))
            out.append("_" * (stop - position))
            position = stop
        else:
            out.append(text[position])
            position += 1
    return "".join(out)


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the name and the opcode of everything that looks like an instruction, in the order of the text."""
    plain = without_strings_and_comments(text)
    found: list[tuple[str, str]] = []
    position = plain.find("=")
    while position >= 0:
        name = _name_before(plain, position)
        opcode = _opcode_behind(plain, position + 1)
        if name is not None and opcode is not None:
            found.append((name, opcode))
        position = plain.find("=", position + 1)
    return found


def _name_before(text: str, position: int) -> str | None:
    if position == 0 or not text[position - 1].isspace():
        return None
    stop = position
    while stop > 0 and text[stop - 1].isspace():
        stop -= 1
    start = stop
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    return text[start:stop] or None


def _opcode_behind(text: str, position: int) -> str | None:
    """Pass over blanks and a shape, and return the word that stands before a parenthesis there."""
    position = _blanks(text, position)
    if position < len(text) and text[position] == "(":
        position = _bracketed(text, position)
    else:
        start = position
        while position < len(text) and (text[position].isalnum() or text[position] in "-_"):
            position += 1
        if position < len(text) and text[position] == "(":
            return text[start:position] or None
        if position < len(text) and text[position] == "[":
            position = _bracketed(text, position)
            if position < len(text) and text[position] == "{":
                position = _bracketed(text, position)
    position = _blanks(text, position)
    start = position
    while position < len(text) and (text[position].isalnum() or text[position] == "-"):
        position += 1
    word = text[start:position]
    position = _blanks(text, position)
    return word if word and position < len(text) and text[position] == "(" else None


def _blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _bracketed(text: str, position: int) -> int:
    depth = 0
    while position < len(text):
        if text[position] in "([{":
            depth += 1
        elif text[position] in ")]}":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return position


def communicating(text: str) -> list[tuple[str, str]]:
    """Return the instructions that are collectives, their starts, sends or recvs."""
    wanted = (*COLLECTIVE_OPCODES, *STARTS, "send", "recv")
    return [(name, opcode) for name, opcode in instructions(text) if opcode in wanted]

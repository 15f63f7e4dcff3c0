# SPDX-License-Identifier: Apache-2.0
"""hint_sources.py: the texts of all hints in the sources.

A hint is what stands after the message in an error, what print_hint prints, and what is stored or
passed under a name with `hint` in it, or returned by a function of such a name."""
import dataclasses
import re

LAYERS = ("app", "core", "gpu", "io")
ERROR = re.compile(r"\b(?:Usage|Input|Device|Output|Limit|Internal)Error\(")
QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CALL = re.compile(r"([\w:]+)\(")
# The functions whose arguments are text of the hint; of fmt::format it is the first one.
PASSING = ("fmt::format", "std::string", "fmt::runtime")


@dataclasses.dataclass(frozen=True)
class Text:
    """A string of the sources, and the pattern of the hints that hold it."""
    text: str
    pattern: str
    place: str = dataclasses.field(compare=False)


def skip(code, at):
    """The end of the string, the character or the bracket that begins at `at`, or of one letter."""
    quoted = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)'|//[^\n]*").match(code, at)
    if quoted:
        return quoted.end()
    if code[at] in "([{":
        at += 1
        while code[at] not in ")]}":
            at = skip(code, at)
    return at + 1


def items(code, at):
    """What stands between commas, until the bracket or the statement ends."""
    begin = at
    while code[at] not in ")]};":
        if code[at] == ",":
            yield code[begin:at]
            begin = at + 1
        at = skip(code, at)
    yield code[begin:at]


def pattern_of(text, before, after):
    """Where text is added before or behind, it is a part of the hint."""
    pattern = re.sub(r"\\\{[\w\\:.]*\\\}", ".*", re.escape(text))
    begin = "" if before.rstrip().endswith("+") or text[0] in ",; " else "^"
    end = "" if after.lstrip().startswith("+") or text[-1] in " :" else "$"
    return begin + pattern + end


def texts_of(code, place):
    """The texts of an expression; adjacent strings are one."""
    at = 0
    while at < len(code):
        call, quoted = CALL.match(code, at), QUOTED.match(code, at)
        if quoted:
            begin, text = at, ""
            while quoted:
                text, at = text + quoted.group(1), quoted.end()
                quoted = re.compile(r"\s*" + QUOTED.pattern).match(code, at)
            text = text.replace('\\"', '"').replace("\\\\", "\\").removeprefix("\\n")
            text = text.removeprefix("hint: ")
            text = text.removesuffix("\\n")
            if len(re.findall("[a-z]", text)) > 3:
                yield Text(text, pattern_of(text, code[:begin], code[at:]), place)
        elif call:
            if call.group(1) in PASSING:
                arguments = list(items(code, call.end()))
                yield from texts_of(arguments[0], place)
            at = skip(code, call.end() - 1)
        else:
            at += 1


def expressions(code):
    """Where hints stand, and what they are."""
    for error in ERROR.finditer(code):
        for argument in list(items(code, error.end()))[1:]:
            yield error.start(), argument
    for printed in re.finditer(r"[;{)] *\n *print_hint\(", code):
        yield printed.start(), next(items(code, printed.end()))
    for stored in re.finditer(r"\b\w*hint \+?=\s", code):
        added = "+" if "+=" in stored.group() else ""
        yield stored.start(), added + next(items(code, stored.end()))
    for function in re.finditer(r"\bstd::string [\w:]*hint\w*\([^;{]*\) (?:const )?\{", code):
        body = code[function.end():skip(code, function.end() - 1)]
        for returned in re.finditer(r"\breturn ", body):
            yield function.start(), next(items(body, returned.end()))
    for passing in re.finditer(r" (\w+)\(((?:[^(){};]*,)?[^(){};,]*string[^,]*\bhint)\b", code):
        place = len(list(items(passing.group(2) + ")", 0))) - 1
        for call in re.finditer(rf"\b{passing.group(1)}\(", code):
            arguments = list(items(code, call.end()))
            if len(arguments) > place:
                yield call.start(), arguments[place]
    for written in re.finditer(r'"(?:[^"\n]|\\")*hint: [^"\n]*"', code):
        yield written.start(), '"' + written.group().split("hint: ")[1]


def hints(root):
    """All texts, each once; and the places of errors whose hint is neither text nor named so."""
    found, unnamed = {}, []
    for path in sorted(path for layer in LAYERS for path in (root / layer).rglob("*.[ch]pp")):
        code = path.read_text()
        for at, expression in expressions(code):
            place = f"{path.relative_to(root)}:{code.count(chr(10), 0, at) + 1}"
            texts = list(texts_of(expression, place))
            for text in texts:
                found.setdefault(text, text)
            is_named = "hint" in expression or not re.search("[A-Za-z]", expression)
            if ERROR.match(code, at) and not texts and not is_named:
                unnamed.append(f"{place}: {expression.strip()}")
    return list(found.values()), unnamed

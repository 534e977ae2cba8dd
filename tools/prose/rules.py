"""The rules of prose: a pattern each, and what to write instead.

A rule finds a habit, not a mistake. A sentence that keeps every rule and says nothing is still a bad sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.prose.texts import Form, Text

MAX_WORDS = 30
"""Words of a sentence."""


@dataclass(frozen=True)
class Finding:
    """One place that breaks a rule: the words that do, and what to write instead."""

    line: int
    rule: str
    words: str
    instead: str


_UNITS = (
    "access array attribute bank beat bit block board burst byte bytes call channel chunk clock column cycle design "
    "DSP element entry field file filter frame function group image iteration key lane layer line loop map neuron node "
    "operation output pass PE picture piece pixel place port position process product result room row second side step "
    "stream sum tile turn unit value vector weight word"
).replace(" ", "|")
_COUNTED = (
    "accesses activations beats bits blocks bytes channels columns copies cycles DSPs entries frames images iterations "
    "lanes lines MACs maps multiplications multipliers operations pictures pieces pixels places ports positions "
    "products registers results rows sums tiles times values weights words once one several some twice two three "
    "four six eight sixteen"
).replace(" ", "|")
_LINKS = (
    "of in from to by with for per at on that than and or is as if into within after before between until become "
    "becomes needs without share below above fit fits fill fills make makes has have behind through over are"
).replace(" ", "|")

PHRASES: dict[str, tuple[str, str]] = {
    "beside": (r"beside", "next to, compared with, and"),
    "behind": (r"behind", "after, following"),
    "those of": (r"those of", "name the thing"),
    "that of": (r"that of", "name the thing"),
    "as many": (r"as many(?! as\b)", "the same number of"),
    "where there": (r"where there", "if"),
    "told": (r"told|tells?", "is reported, says"),
    "what comes": (r"what (?:comes|goes|leaves|stands|lies|remains|belongs|follows|holds)", "name the thing"),
    "so manieth": (r"so manieth", "every n-th"),
    "stands": (r"(?:stands?|stood)(?! for\b)", "is, is stored, is listed"),
    "lies": (r"lies?|lay(?! out)", "is, is stored"),
    "brought": (r"brought|bring to", "is resized, is moved"),
    "goes on": (r"go(?:es|ing)? on", "continues"),
    "leaves": (r"leaves?(?! (?:out|alone|room|it|them|no|the \w+ (?:as|to|open))\b)", "is written, is the output"),
    "is no": (r"(?<!there )(?:is|are|be) no(?! longer\b)(?:ne)?|none of which|of which none", "is not a"),
    "whoever": (r"who(?:m)?ever|whatever|whichever|whoso", "name the thing"),
    "wishes": (r"wish(?:es|ed)?", "options"),
    "weight reuse": (r"passages? of the weights", "weight reuse"),
    "piecewise linear": (r"pieces of lines", "piecewise-linear table"),
    "reckon": (r"reckon(?:s|ed|ing)?", "compute"),
    "per": (
        rf"(?:{_COUNTED}) (?:(?!(?:{_LINKS}) )[A-Za-z]+ )?an? (?:{_UNITS})"
        rf"|an? (?:word|lane|row|value) an? (?:{_UNITS})",
        "per",
    ),
}
"""Words and phrases: the name of the rule, the pattern, and what to write instead."""

_PHRASE = {name: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for name, (pattern, _) in PHRASES.items()}
_ANY_PHRASE = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern, _ in PHRASES.values()), re.IGNORECASE)

_FRAGMENT = re.compile(r"(?:Of|What|That(?! (?:is|the)\b)|Those|Which|Whose|Who|Whom|Where|Whether|How|As)\b")
_NO_VERB = re.compile(
    r"(?:A|An|The|This|These|Each|Every|All|Both|Only|No|None|One|Two|If|For|In|At|By|On|To|From|With|Without|"
    r"Between|After|Before|Until|Up|Per|Bits|Bytes|Words|Cycles|Names|It|Its)\b"
)
_NO_UNIT = re.compile(
    r"test_(?:an?|the|it|its|they|their|this|that|these|those|of|what|which|who|whose|how|why|when|where|whether|"
    r"each|every|all|any|both|either|neither|no|none|nobody|nothing|some|several|many|more|most|few|only|other|another|"
    r"one|two|three|four|five|six|seven|eight|nine|ten)(?:_|$)"
)
"""The start of a test's name that names no unit: an article, a pronoun, a question word or a quantifier."""
_FEW_WORDS = re.compile(r"(?:In|For|At|By|On|To|From|With|Without|Between|One|Two|If|Only)\b")


def findings(text: Text) -> Iterator[Finding]:
    """Yield the rules that a text breaks, each with its place."""
    if text.form is Form.TEST_NAME:
        if _NO_UNIT.match(text.text):
            yield Finding(text.line, "test name", text.text, "test_<unit>_<case>_<result>")
        return
    first = text.text.lstrip()
    if text.form in (Form.FUNCTION, Form.NOUN, Form.COMMENT) and (match := _FRAGMENT.match(first)):
        yield Finding(text.line, "fragment", match[0], "a sentence with a subject, or a noun")
    if text.form is Form.FUNCTION and (match := _NO_VERB.match(first)):
        yield Finding(text.line, "imperative", match[0], "Return …, or another verb")
    if text.form is Form.NOUN and len(first.split()) <= 4 and (match := _FEW_WORDS.match(first)):
        yield Finding(text.line, "fragment", first.strip(), "a noun, or nothing")
    yield from _phrases(text)
    yield from _long_sentences(text)


def _phrases(text: Text) -> Iterator[Finding]:
    plain = re.sub(r"`[^`\n]*`", lambda match: "x" * len(match[0]), text.text)
    plain = re.sub(r"\s", " ", plain)
    if not _ANY_PHRASE.search(plain):
        return
    for rule, pattern in _PHRASE.items():
        for match in pattern.finditer(plain):
            line = text.line + text.text.count("\n", 0, match.start())
            yield Finding(line, rule, match[0], PHRASES[rule][1])


_LIST_ITEM = re.compile(r"\s*(?:[\w, *]+: |[-*] |\w+:$)")
_DRAWING = re.compile(r"\s{3,}")
"""An indented line of a comment: a formula or a diagram."""
_TABLE_ROW = re.compile(r"\S\s{3,}\S|\s{20,}\S")
"""A line with columns, or the second line of a cell."""


def _long_sentences(text: Text) -> Iterator[Finding]:
    unit, start = list[str](), text.line
    for number, line in enumerate([*text.text.split("\n"), ""], start=text.line):
        is_drawing = _TABLE_ROW.search(line) or (text.form is Form.COMMENT and _DRAWING.match(line))
        if not line.strip() or is_drawing or (text.form is not Form.PAGE and _LIST_ITEM.match(line)):
            yield from _long(unit, start)
            unit = []
        if not is_drawing:
            start = number if not unit else start
            unit.append(line)


def _long(lines: list[str], start: int) -> Iterator[Finding]:
    for sentence in re.split(r"(?<=[.!?:])[)\"]?\s+", " ".join(lines)):
        words = re.findall(r"[A-Za-z][\w'’-]*", re.sub(r"`[^`]*`", "x", sentence))
        if len(words) > MAX_WORDS:
            yield Finding(start, "long", f"{len(words)} words: {' '.join(words[:6])} …", "two sentences")

"""Read a folder of text and cut it into passages: one heading path, at most MAX_WORDS words each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SUFFIXES = (".md", ".txt", ".rst")
IGNORED_FOLDERS = {"node_modules", "site-packages", "venv", "build", "dist", "__pycache__"}
MAX_WORDS = 120
JOIN_BELOW = 40

# Forty characters bound a "word", so that text without spaces is cut as well.
WORD = re.compile(r"\S{1,40}")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
HASH_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
UNDERLINE = re.compile(r"([=\-~^\"'*+])\1{2,}$")
MARKDOWN_UNDERLINES = "=-"
OTHER_UNDERLINES = "=-~^\"'*+"
FENCE = re.compile(r"\s*(`{3,}|~{3,})")


@dataclass(frozen=True)
class Passage:
    """A short piece of a file, with the path of headings it stands under ("" if there is none)."""

    source: str
    heading: str
    text: str

    @property
    def content(self) -> str:
        """What is embedded: the heading gives a short paragraph its topic."""
        return f"{self.heading}. {self.text}" if self.heading else self.text

    @property
    def title(self) -> str:
        """The nearest heading."""
        return self.heading.rpartition(" > ")[2]

    @property
    def place(self) -> str:
        """Where a reader finds it."""
        return f"{self.source}: {self.heading}" if self.heading else self.source


@dataclass(frozen=True)
class Corpus:
    """The passages of some files, and the names of the files that could not be read as text."""

    passages: tuple[Passage, ...]
    n_files: int
    skipped: tuple[str, ...]


def read_folder(folder: Path) -> Corpus:
    """Passages of every text file below `folder`, in the order of the file names."""
    return read_files(find_files(folder), folder)


def read_project(root: Path) -> Corpus:
    """Passages of a project's own documents: Markdown at its root and everything in docs/."""
    at_root = sorted(root.glob("*.md"))
    return read_files([*at_root, *find_files(root / "docs")], root)


def find_files(folder: Path) -> list[Path]:
    """Text files below `folder` by suffix; hidden and generated folders are left out."""
    found = []
    for here, subfolders, names in os.walk(folder):
        subfolders[:] = [name for name in subfolders if not _is_ignored(name)]
        found += [Path(here, name) for name in names if _is_text(Path(name))]
    return sorted(found)


def _is_text(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def _is_ignored(folder_name: str) -> bool:
    return folder_name.startswith(".") or folder_name in IGNORED_FOLDERS


def read_files(paths: Iterable[Path], root: Path) -> Corpus:
    """Passages of the given files; a repeated passage is kept once, an unreadable file is named."""
    passages: dict[str, Passage] = {}
    n_files, skipped = 0, []
    for path in paths:
        source = path.relative_to(root).as_posix()
        text = read_text(path)
        if text is None:
            skipped.append(source)
            continue
        n_files += 1
        for passage in cut(text, source):
            passages.setdefault(passage.content, passage)
    return Corpus(tuple(passages.values()), n_files, tuple(skipped))


def read_text(path: Path) -> str | None:
    """Text of a UTF-8 file, or None when it cannot be opened, is binary or has another encoding."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text


def cut(text: str, source: str) -> list[Passage]:
    """Passages of one text: split at headings and paragraphs, short neighbours joined."""
    is_markdown = source.lower().endswith(".md")
    return [
        Passage(source, heading, piece)
        for heading, body in sections(text, is_markdown)
        for piece in join_short(capped(paragraphs(body)))
    ]


def sections(text: str, is_markdown: bool) -> Iterator[tuple[str, str]]:
    """Pairs (heading path, body); a `#` line is a heading in Markdown only, an underlined one anywhere."""
    path: dict[int, str] = {}
    body: list[str] = []
    lines = _lines(text, is_markdown)
    for is_prose, line, below in lines:
        level, title = _heading(line, below, is_markdown) if is_prose else (0, "")
        if not level:
            body.append(line)
            continue
        yield " > ".join(path.values()), "\n".join(body)
        path = {above: name for above, name in path.items() if above < level} | {level: title}
        body = []
        if UNDERLINE.match(below):
            next(lines)
    yield " > ".join(path.values()), "\n".join(body)


def _lines(text: str, is_markdown: bool) -> Iterator[tuple[bool, str, str]]:
    """Triples (outside a code fence?, line, the line below it)."""
    lines = [line.rstrip() for line in text.splitlines()]
    fence = ""
    for line, below in pairwise([*lines, ""]):
        mark = FENCE.match(line) if is_markdown else None
        yield not (fence or mark), line, below
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""


def _heading(line: str, below: str, is_markdown: bool) -> tuple[int, str]:
    """Level and title of a heading line; level 0 when the line is none."""
    hashes = HASH_HEADING.match(line) if is_markdown else None
    if hashes:
        return len(hashes[1]), hashes[2]
    underline = UNDERLINE.match(below)
    if not underline or not line[:1].isalnum() or len(below) < len(line):
        return 0, ""
    return (MARKDOWN_UNDERLINES if is_markdown else OTHER_UNDERLINES).find(underline[1]) + 1, line


def paragraphs(body: str) -> list[str]:
    """Blocks of a section between blank lines."""
    return [block.strip() for block in re.split(r"\n\s*\n", body) if re.search(r"\w", block)]


def capped(blocks: Iterable[str]) -> Iterator[str]:
    """The blocks, those above MAX_WORDS cut at ends of sentences or lines."""
    for block in blocks:
        if n_words(block) <= MAX_WORDS:
            yield block
        else:
            yield from _joined(_short_sentences(block), MAX_WORDS)


def sentences(text: str) -> list[str]:
    """Sentences and lines of a text, without surrounding blanks."""
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]


def _short_sentences(block: str) -> Iterator[str]:
    for sentence in sentences(block):
        words = WORD.findall(sentence)
        starts = range(0, len(words), MAX_WORDS)
        pieces = (" ".join(words[start : start + MAX_WORDS]) for start in starts)
        yield from pieces if len(words) > MAX_WORDS else [sentence]


def join_short(blocks: Iterable[str]) -> list[str]:
    """The blocks, each one joined to its neighbour while that one has fewer than JOIN_BELOW words."""
    return _joined(blocks, JOIN_BELOW)


def _joined(blocks: Iterable[str], enough: int) -> list[str]:
    joined: list[str] = []
    for block in blocks:
        fits = joined and n_words(joined[-1]) + n_words(block) <= MAX_WORDS
        if fits and min(n_words(joined[-1]), n_words(block)) < enough:
            joined[-1] += "\n" + block
        else:
            joined.append(block)
    return joined


def n_words(text: str) -> int:
    """Words of a text; a run without spaces counts once for every 40 characters."""
    return sum(1 for _ in WORD.finditer(text))

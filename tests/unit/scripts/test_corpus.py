"""Rules of the chunker and of reading a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from _corpus import JOIN_BELOW, MAX_WORDS, Passage, cut, n_words, read_folder, read_project, read_text
from hypothesis import given
from hypothesis import strategies as st


def words(n: int, word: str = "word") -> str:
    """A paragraph of n words without a sentence end."""
    return " ".join(f"{word}{i}" for i in range(n))


def places(text: str, name: str = "a.md") -> list[tuple[str, str]]:
    """Heading and text of each passage."""
    return [(passage.heading, passage.text) for passage in cut(text, name)]


def test_a_heading_starts_a_passage_and_carries_its_path() -> None:
    """Text under nested headings is cut at each of them and keeps the whole path."""
    text = "intro\n# A\none\n## B ##\ntwo\n### C\nthree\n## D\nfour\n# E\nfive"
    assert places(text) == [
        ("", "intro"),
        ("A", "one"),
        ("A > B", "two"),
        ("A > B > C", "three"),
        ("A > D", "four"),
        ("E", "five"),
    ]


def test_a_heading_without_text_makes_no_passage() -> None:
    """A heading or rule with nothing below it is no passage."""
    assert places("# A\n\n---\n\n## B\n\ntext") == [("A > B", "text")]
    assert places("# A\n") == []


def test_a_hash_inside_a_code_fence_is_no_heading() -> None:
    """Comments in fenced code stay text, also when the fence holds a shorter fence."""
    fenced = "````sh\n# comment\n```\n# still code\n````"
    assert places(f"# A\n{fenced}\n# B\nend") == [("A", fenced), ("B", "end")]


def test_a_hash_is_a_heading_in_markdown_only() -> None:
    """In plain text a line that starts with # is text."""
    assert places("# A\nbody", "a.txt") == [("", "# A\nbody")]


@pytest.mark.parametrize("name", ["a.md", "a.rst", "a.txt"])
def test_an_underlined_line_is_a_heading(name: str) -> None:
    """Underlined titles are headings in every kind of file, = above -."""
    assert places("Title\n=====\none\n\nPart\n----\ntwo", name) == [("Title", "one"), ("Title > Part", "two")]


def test_a_tilde_underline_is_a_heading_of_restructured_text() -> None:
    """In .rst a row of ~ underlines the third level; it opens no code fence."""
    text = "Aaa\n===\nBbb\n---\nCcc\n~~~\none\n\nDdd\n===\ntwo"
    assert places(text, "a.rst") == [("Aaa > Bbb > Ccc", "one"), ("Ddd", "two")]


def test_a_rule_shorter_than_the_line_above_is_no_underline() -> None:
    """A sentence above a short horizontal rule is not a heading."""
    assert places("A whole sentence.\n---\nmore")[0][0] == ""


def test_short_paragraphs_are_joined_and_long_ones_stand_alone() -> None:
    """Neighbours are joined while one of them is short; two long ones are not."""
    short, long = words(10), words(JOIN_BELOW + 20)
    assert [text for _, text in places(f"{short}\n\n{short}\n\n{short}")] == ["\n".join([short] * 3)]
    assert [text for _, text in places(f"{long}\n\n{long}")] == [long, long]
    assert [text for _, text in places(f"{long}\n\n{short}\n\n{long}")] == [f"{long}\n{short}", long]


def test_paragraphs_are_never_joined_across_headings() -> None:
    """A short section stays a passage of its own."""
    assert len(places("# A\none\n# B\ntwo")) == 2


def test_a_long_paragraph_is_cut_at_sentence_ends() -> None:
    """Every piece of a long paragraph ends with a sentence."""
    text = " ".join(f"{words(29, 'w')} end." for _ in range(10))
    pieces = [text for _, text in places(text)]
    assert len(pieces) == 3
    assert all(piece.endswith("end.") for piece in pieces)


@pytest.mark.parametrize("text", [words(1000), "x" * 50_000, "字" * 9_000, words(130) + ".\n" + words(5)])
def test_no_passage_is_longer_than_the_cap(text: str) -> None:
    """The cap also holds for text without sentences and for text without spaces."""
    pieces = [passage.text for passage in cut(text, "a.txt")]
    assert len(pieces) > 1
    assert max(map(n_words, pieces)) <= MAX_WORDS


@given(st.text(alphabet="ab #=-~`.\n", max_size=400), st.sampled_from(["a.md", "a.txt", "a.rst"]))
def test_any_text_gives_bounded_passages_that_are_not_empty(text: str, name: str) -> None:
    """Whatever the markup, a passage holds a letter and at most MAX_WORDS words."""
    for passage in cut(text, name):
        assert any(map(str.isalnum, passage.text))
        assert n_words(passage.text) <= MAX_WORDS


@given(st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_no_word_is_lost(lengths: list[int]) -> None:
    """The passages of a text hold its words, in order."""
    text = "\n\n".join(words(n, f"p{i}w") for i, n in enumerate(lengths))
    assert " ".join(passage.text for passage in cut(text, "a.txt")).split() == text.split()


def test_a_passage_is_embedded_with_its_heading_and_named_by_its_place() -> None:
    """The embedded text starts with the heading path; the place names file and heading."""
    passage = Passage("docs/a.md", "A > B", "text")
    assert (passage.content, passage.title, passage.place) == ("A > B. text", "B", "docs/a.md: A > B")
    bare = Passage("a.txt", "", "text")
    assert (bare.content, bare.title, bare.place) == ("text", "", "a.txt")


def test_a_folder_is_read_in_the_order_of_names_without_hidden_and_foreign_files(tmp_path: Path) -> None:
    """Only visible text files count, by suffix in any case, below any visible folder."""
    for name in ("b.md", "a.TXT", "sub/c.rst", ".hidden/d.md", ".e.md", "node_modules/f.md", "g.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text of {name}")
    corpus = read_folder(tmp_path)
    assert [passage.source for passage in corpus.passages] == ["a.TXT", "b.md", "sub/c.rst"]
    assert (corpus.n_files, corpus.skipped) == (3, ())


def test_files_that_are_not_utf8_text_are_skipped_and_named(tmp_path: Path) -> None:
    """Latin-1, UTF-16, binary and dangling files are counted; the others are still read."""
    (tmp_path / "good.md").write_text("text")
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))
    (tmp_path / "wide.txt").write_text("text", encoding="utf-16")
    (tmp_path / "zero.txt").write_bytes(b"a\0b")
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    corpus = read_folder(tmp_path)
    assert corpus.skipped == ("gone.md", "latin.txt", "wide.txt", "zero.txt")
    assert [passage.text for passage in corpus.passages] == ["text"]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    """A UTF-8 file that starts with a byte order mark has its heading recognised."""
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf# A\ntext")
    assert read_text(tmp_path / "a.md") == "# A\ntext"


def test_a_repeated_passage_is_kept_once(tmp_path: Path) -> None:
    """The same text in two files is one passage, that of the first file."""
    (tmp_path / "a.txt").write_text("same text")
    (tmp_path / "b.txt").write_text("same text")
    corpus = read_folder(tmp_path)
    assert [(passage.source, corpus.n_files) for passage in corpus.passages] == [("a.txt", 2)]


def test_an_empty_folder_gives_no_passages(tmp_path: Path) -> None:
    """No file, and files without a word, give an empty corpus."""
    assert read_folder(tmp_path).passages == ()
    (tmp_path / "empty.md").touch()
    (tmp_path / "a.md").write_text(" \n\n---\n")
    assert read_folder(tmp_path).passages == ()


def test_a_project_is_its_root_documents_and_its_docs_folder(tmp_path: Path) -> None:
    """Markdown at the root and text below docs/ is read; pins and other folders are not."""
    (tmp_path / "README.md").write_text("readme")
    (tmp_path / "constraints.txt").write_text("numpy==2.0")
    assert [passage.source for passage in read_project(tmp_path).passages] == ["README.md"]
    for name in ("docs/a.md", "docs/more/b.md", "tests/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}")
    assert [p.source for p in read_project(tmp_path).passages] == ["README.md", "docs/a.md", "docs/more/b.md"]

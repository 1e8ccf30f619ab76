"""Files as streams of bytes: decompressed, in blocks of whole lines, decoded with the line of what is not text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from mmpca.io.faults import refusal

BLOCK_BYTES = 2**22

_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_UNSUPPORTED = {b"\x28\xb5\x2f\xfd": ("Zstandard", "zstd -d"), b"\x04\x22\x4d\x18": ("LZ4", "lz4 -d")}
_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz")


class Block(NamedTuple):
    """Whole lines of a file."""

    content: bytes
    first_line: int  # number of the first of them, from 1


def check_file(path: Path) -> None:
    """Refuse what is not a file with content."""
    if not path.exists():
        raise refusal(path, "there is no such file. Check the path, and the folder that it is relative to.")
    if path.is_dir():
        raise refusal(path, "expected a file, but this is a folder. Give the file in it.")
    try:
        is_empty = path.is_file() and path.stat().st_size == 0
        with path.open("rb"):
            pass
    except OSError as error:
        raise refusal(path, f"the file cannot be opened: {error.strerror}. Check its permissions.") from error
    if is_empty:
        raise refusal(path, "the file is empty. Check the step that wrote it.")


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed where its first bytes say that it is compressed."""
    check_file(path)
    try:
        with _open(path) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise refusal(
            path, f"the compressed file is truncated or damaged ({error}). Copy or download it again."
        ) from error
    except OSError as error:
        raise refusal(path, f"the file cannot be read to its end ({error}). Copy or download it again.") from error


def _open(path: Path) -> IO[bytes]:
    magic = first_bytes(path)
    for mark, (name, command) in _UNSUPPORTED.items():
        if magic.startswith(mark):
            raise refusal(path, f"{name} compression is not supported. Decompress it first, with {command}.")
    for mark, opener in _OPENERS.items():
        if magic.startswith(mark):
            # A large buffer: lines come in pieces of a few bytes otherwise.
            return cast(IO[bytes], io.BufferedReader(opener(path, "rb"), 2**17))
    return path.open("rb")


def first_bytes(path: Path, number: int = 8) -> bytes:
    """Return the first bytes of a file as it is on disk."""
    with path.open("rb") as stream:
        return stream.read(number)


def beginning(path: Path, size: int = 2**16) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with open_stream(path) as stream:
        return stream.read(size)


def blocks(stream: IO[bytes], first_line: int) -> Iterator[Block]:
    """Yield the rest of a stream in blocks of whole lines, about `BLOCK_BYTES` each."""
    while content := stream.read(BLOCK_BYTES):
        if not content.endswith(b"\n"):
            content += stream.readline()
        yield Block(content, first_line)
        first_line += content.count(b"\n")


def decode(path: Path, content: bytes, first_line: int = 1) -> str:
    """Return UTF-8 text, without a byte order mark, or refuse the line that is something else."""
    for mark, name in _BYTE_ORDER_MARKS.items():
        if first_line == 1 and content.startswith(mark):
            raise refusal(path, f"expected UTF-8 text, but this is {name}. Save it as UTF-8.", line=1)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + content.count(b"\n", 0, error.start)
        raise refusal(
            path,
            f"expected UTF-8 text, but found the byte 0x{content[error.start]:02x}. Save the file as UTF-8 (for "
            "example with iconv -f latin1 -t utf-8), all of it in one encoding.",
            line=line,
        ) from error
    if "\x00" in text:
        line = first_line + text.count("\n", 0, text.index("\x00"))
        raise refusal(path, "expected text, but found binary data. Check the format of the file.", line=line)
    return text.removeprefix("\ufeff") if first_line == 1 else text


def text_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends; an empty one at the end of the text is none."""
    # Not splitlines, which also breaks names at rarer characters.
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of text, whatever system wrote their ends."""
    with open_stream(path) as stream:
        return text_lines(decode(path, stream.read()).replace("\r\n", "\n").replace("\r", "\n"))


def stem(path: Path) -> str:
    """Return the name of a file without the ending of a compression and without its own."""
    name = path.name
    for ending in COMPRESSED_ENDINGS:
        name = name.removesuffix(ending)
    return Path(name).stem


def ending(path: Path) -> str:
    """Return the ending of a file below that of a compression, in lower case: ".mtx" of "X.mtx.gz"."""
    name = path.name.lower()
    for compressed in COMPRESSED_ENDINGS:
        name = name.removesuffix(compressed)
    return Path(name).suffix

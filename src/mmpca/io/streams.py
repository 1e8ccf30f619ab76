"""Files as streams of bytes: opened, decompressed, split into blocks of whole lines, and decoded."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from mmpca.errors import InputFileError

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")
LONGEST_LINE = 2**24  # bytes; compressed files of a few kilobytes can have far longer ones

_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_UNSUPPORTED = {b"\x28\xb5\x2f\xfd": ("Zstandard", "zstd -d"), b"\x04\x22\x4d\x18": ("LZ4", "lz4 -d")}
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def input_error(path: Path, message: str, *, line: int | None = None, record: int | None = None) -> InputFileError:
    """Return the error for a file that cannot be read; lines, or records of binary files, are counted from 1."""
    place = f", line {line}" if line is not None else f", record {record}" if record is not None else ""
    return InputFileError(f"{path}{place}: {message}", path=path, line=record if line is None else line)


def missing_extra(path: Path, *, package: str, extra: str) -> InputFileError:
    """Return the error for a format whose package is not installed."""
    return input_error(path, f"this format requires {package}, which is not installed: pip install 'mmpca[{extra}]'")


# --- opening ----------------------------------------------------------------------------------------------------


def check_file(path: Path) -> None:
    """Raise InputFileError unless the path is a readable file that is not empty."""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            with path.open("rb"):
                pass
    except (FileNotFoundError, NotADirectoryError):
        raise input_error(path, "there is no such file. Check the path and the folder it is relative to.") from None
    except (OSError, ValueError) as error:  # ValueError for paths that no file can have
        reason = getattr(error, "strerror", None) or error
        raise input_error(path, f"the file cannot be opened: {reason}. Check the path and permissions.") from error
    if stat.S_ISDIR(status.st_mode):
        raise input_error(path, "expected a file, but this is a folder. Pass a file in it.")
    if not stat.S_ISREG(status.st_mode):  # it is opened several times, and may never end
        raise input_error(path, "expected a file, but this is a pipe or a device. Write its content to a file first.")
    if status.st_size == 0:
        raise input_error(path, "the file is empty. Check the step that wrote it.")


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; compression is recognized by the first bytes."""
    check_file(path)
    try:
        with _open(path) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise input_error(
            path, f"the compressed file is truncated or damaged ({error}). Copy or download it again."
        ) from error
    except OSError as error:
        raise input_error(path, f"the file cannot be read to the end ({error}). Copy or download it again.") from error


def _open(path: Path) -> IO[bytes]:
    magic = first_bytes(path)
    for mark, (name, command) in _UNSUPPORTED.items():
        if magic.startswith(mark):
            raise input_error(path, f"{name} compression is not supported. Decompress the file first, with {command}.")
    for mark, opener in _OPENERS.items():
        if magic.startswith(mark):
            # A large buffer, because readline would otherwise fetch a few bytes at a time.
            return cast(IO[bytes], io.BufferedReader(opener(path, "rb"), 2**17))
    return path.open("rb")


def first_bytes(path: Path, size: int = 8) -> bytes:
    """Return the first bytes of a file without decompressing it."""
    with path.open("rb") as stream:
        return stream.read(size)


def beginning(path: Path, size: int = 2**16) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with open_stream(path) as stream:
        return stream.read(size)


# --- text -------------------------------------------------------------------------------------------------------


def read_line(path: Path, stream: IO[bytes], number: int, longest: int = LONGEST_LINE) -> bytes:
    """Return the next line, with its end, or raise InputFileError if it has more than `longest` bytes."""
    line = stream.readline(longest + 1)
    if len(line) > longest:
        raise input_error(
            path,
            f"the line has more than {longest} bytes. Check the line ends; write very wide tables as Matrix Market.",
            line=number,
        )
    return line


def blocks(
    path: Path, stream: IO[bytes], first_line: int, size: int, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, bytes]]:
    """Yield the rest of a stream in blocks of whole lines, about `size` bytes each, with their first line number."""
    while content := stream.read(size):
        if not content.endswith(b"\n"):
            content += read_line(path, stream, first_line + content.count(b"\n"), longest)
        yield first_line, content
        first_line += content.count(b"\n")


def text_blocks(path: Path, first_line: int, size: int) -> Iterator[tuple[int, str]]:
    """Yield the text of a file from `first_line` on in blocks of whole lines, with their first line number."""
    with open_stream(path) as stream:
        for number in range(1, first_line):
            read_line(path, stream, number)
        for line, content in blocks(path, stream, first_line, size):
            yield line, decode(path, content, line)


def read_text(path: Path, *, harmless_size: int = 2**28, max_ratio: int = 200) -> str:
    """Return the whole text of a file; it may unpack to `harmless_size` bytes or `max_ratio` times its size."""
    check_file(path)
    limit = max(harmless_size, max_ratio * path.stat().st_size)
    content = bytearray()
    with open_stream(path) as stream:
        while piece := stream.read(2**20):
            content += piece
            if len(content) > limit:
                raise input_error(
                    path,
                    f"the compressed file unpacks to more than {limit / 1e6:.0f} MB, which is implausible for text. If "
                    "you trust it, decompress it first.",
                )
    return decode(path, bytes(content))


def decode(path: Path, content: bytes, first_line: int = 1) -> str:
    """Decode UTF-8 without a byte order mark, or raise InputFileError with the offending line."""
    if first_line == 1 and content.startswith(_UTF_16_MARKS):
        raise input_error(path, "expected UTF-8 text, but this is UTF-16. Save the file as UTF-8.", line=1)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise input_error(
            path,
            f"expected UTF-8 text, but found the byte 0x{content[error.start]:02x}. Convert the whole file to UTF-8, "
            "for example with iconv -f latin1 -t utf-8.",
            line=first_line + content.count(b"\n", 0, error.start),
        ) from error
    if "\x00" in text:
        line = first_line + text.count("\n", 0, text.index("\x00"))
        raise input_error(path, "expected text, but found binary data. Check the format of the file.", line=line)
    return text.removeprefix("\ufeff") if first_line == 1 else text


def text_lines(text: str) -> list[str]:
    """Split a text into lines without their ends."""
    # str.splitlines would also split names at rarer characters.
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, with the line ends of any system."""
    return text_lines(read_text(path).replace("\r\n", "\n").replace("\r", "\n"))


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of one line of a delimited file."""
    if '"' not in line:
        return line.split(delimiter)  # several times faster than the csv module
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:
        return line.split(delimiter)


# --- names of files ---------------------------------------------------------------------------------------------


def _uncompressed(path: Path) -> Path:
    """Return the name of a file without the suffix of a compression."""
    return Path(path.stem) if path.suffix.lower() in COMPRESSED_SUFFIXES else Path(path.name)


def stem(path: Path) -> str:
    """Return "X" for "X.mtx.gz"."""
    return _uncompressed(path).stem


def suffix(path: Path) -> str:
    """Return ".mtx" for "X.MTX.gz"."""
    return _uncompressed(path).suffix.lower()

"""Files as streams of bytes: opened, decompressed, split into blocks of whole lines, and decoded."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
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
_N_DETECTED = 2**20  # bytes at the beginning that decide on the encoding


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


def text_blocks(path: Path, first_line: int, size: int, encoding: str | None = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield the text of a file from `first_line` on in blocks of whole lines, with their first line number."""
    with open_text(path, encoding) as stream:
        for number in range(1, first_line):
            read_line(path, stream, number)
        for line, content in blocks(path, stream, first_line, size):
            yield line, decode(path, content, line)


def read_text(
    path: Path,
    *,
    encoding: str | None = None,
    notes: list[str] | None = None,
    harmless_size: int = 2**28,
    max_ratio: int = 200,
) -> str:
    """Return the whole text of a file; it may unpack to `harmless_size` bytes or `max_ratio` times its size.

    A remark on an encoding that was detected is appended to `notes`, in place.
    """
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
    if encoding is None:
        encoding = detect_encoding(bytes(content[:_N_DETECTED]))
        if notes is not None:
            notes += encoding_notes(path, encoding)
    return decode(path, bytes(content), encoding=encoding)


def decode(path: Path, content: bytes, first_line: int = 1, encoding: str = "utf-8") -> str:
    """Decode a text without a byte order mark, or raise InputFileError with the offending line."""
    check_encoding(path, encoding)
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        name = "UTF-8" if encoding == "utf-8" else encoding
        raise input_error(
            path,
            f"expected {name} text, but found the byte 0x{content[start]:02x}. If the file has another encoding, "
            "specify it with --encoding (in Python, encoding): for example, cp1252 for Western Europe, cp1250 for "
            "Central Europe, cp1251 for Cyrillic, gb18030, shift_jis or utf-16.",
            line=first_line + content.count(b"\n", 0, start),
        ) from error
    if "\x00" in text:
        line = first_line + text.count("\n", 0, text.index("\x00"))
        raise input_error(path, "expected text, but found binary data. Check the format of the file.", line=line)
    return text.removeprefix("\ufeff") if first_line == 1 else text


def text_lines(text: str) -> list[str]:
    """Split a text into lines without their ends."""
    # str.splitlines would also split names at rarer characters.
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def read_lines(path: Path, notes: list[str] | None = None) -> list[str]:
    """Return the lines of a text file, with the line ends of any system; remarks are appended to `notes`, in place."""
    return text_lines(read_text(path, notes=notes).replace("\r\n", "\n").replace("\r", "\n"))


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of one line of a delimited file."""
    if '"' not in line:
        return line.split(delimiter)  # several times faster than the csv module
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:
        return line.split(delimiter)


# --- encodings --------------------------------------------------------------------------------------------------

# Signs of another encoding misread as Windows-1252: words made of accented letters alone, capitals after small letters,
# and symbols within words or, if no Western word ends in them, after words.
_ACCENTED = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff\u0152\u0153\u0160\u0161\u0178\u017d\u017e"
_CAPITALS = "\u00c0-\u00d6\u00d8-\u00de\u0152\u0160\u0178\u017d"
_WITHIN_WORDS = "\u2013\u2014\u2018\u2019\u2026\xa0\xad\xb7"
_IMPLAUSIBLE = re.compile(
    f"(?<![A-Za-z])[{_ACCENTED}]{{2,}}(?![A-Za-z])|(?<=[a-z])[{_CAPITALS}]|"
    f"(?<=[A-Za-z{_ACCENTED}])([^\x00-\x7f{_ACCENTED}{_WITHIN_WORDS}](?=[A-Za-z{_ACCENTED}])|[\xa1\xb9\xbf\u0192\u02c6])"
)


def detect_encoding(start: bytes) -> str:
    r"""Return the encoding of a text by its first bytes: "utf-8", "utf-16" or "cp1252".

    Other text is reported as "utf-8" too; decoding it then finds the offending byte.

    Examples
    --------
    >>> detect_encoding("Öl, naïve".encode()), detect_encoding("Öl, naïve".encode("cp1252"))
    ('utf-8', 'cp1252')
    >>> detect_encoding("Пушкин".encode("cp1251"))
    'utf-8'
    """
    if start.startswith(_UTF_16_MARKS):
        return "utf-16"
    if start.count(0) > len(start) // 4:  # Latin letters in UTF-16 without a mark
        return "utf-16-be" if start[::2].count(0) > start[1::2].count(0) else "utf-16-le"
    try:
        is_whole = len(start) < _N_DETECTED  # otherwise the last character may be cut off
        codecs.getincrementaldecoder("utf-8")().decode(start, final=is_whole)
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    try:
        text = start.decode("cp1252")
    except UnicodeDecodeError:
        return "utf-8"
    n_runs = len(re.findall("[^\x00-\x7f]+", text))
    n_mixed = len(re.findall(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}", start))  # in UTF-8 after all
    is_binary = re.search("[\x00-\x08\x0e-\x1f]", text) is not None
    return "utf-8" if is_binary or len(_IMPLAUSIBLE.findall(text)) + n_mixed > 0.1 * n_runs else "cp1252"


def encoding_notes(path: Path, encoding: str) -> list[str]:
    """Return a note on an encoding that was detected, if it is a guess."""
    if encoding != "cp1252":
        return []
    return [
        f"{path.name}: read as Windows-1252 (cp1252), because it is not UTF-8. If letters look wrong, specify "
        "its encoding with --encoding."
    ]


def check_encoding(path: Path, encoding: str) -> None:
    """Raise InputFileError unless an encoding is known and one of text."""
    try:
        "".encode(encoding)
    except LookupError:
        raise input_error(path, f"the encoding {encoding!r} is unknown. Use a name such as utf-8 or cp1252.") from None


@contextmanager
def open_text(path: Path, encoding: str | None = None) -> Iterator[IO[bytes]]:
    """Open a text file as a stream of UTF-8, whatever its encoding, which is detected by default."""
    if encoding is None:
        encoding = detect_encoding(beginning(path, _N_DETECTED))
    check_encoding(path, encoding)
    with open_stream(path) as stream:
        is_utf_8 = codecs.lookup(encoding).name in ("utf-8", "ascii")
        yield stream if is_utf_8 else cast(IO[bytes], io.BufferedReader(_Recoded(path, stream, encoding), 2**17))


class _Recoded(io.RawIOBase):
    """A stream of text in another encoding, read as UTF-8."""

    def __init__(self, path: Path, stream: IO[bytes], encoding: str) -> None:
        self._path, self._stream, self._encoding = path, stream, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with UTF-8, in place; return the number of bytes, 0 at the end."""
        while not self._left:
            content = self._stream.read(2**17)
            try:
                text = self._decoder.decode(content, final=not content)
            except UnicodeError as error:
                message = f"the text is not {self._encoding} ({error}). Specify its encoding with --encoding."
                raise input_error(self._path, message) from error
            if not content and not text:
                return 0
            self._left = text.encode("utf-8", errors="replace")
        n_bytes = min(len(buffer), len(self._left))
        buffer[:n_bytes] = self._left[:n_bytes]
        self._left = self._left[n_bytes:]
        return n_bytes


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

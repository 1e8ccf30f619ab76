"""Raw texts: read them from files, and count their words."""

from mmpca.text.counting import CountTexts, TextCounts
from mmpca.text.reading import Texts, read_texts

__all__ = ["CountTexts", "TextCounts", "Texts", "read_texts"]

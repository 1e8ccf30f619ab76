"""Where the search starts: topics from an LDA of the rows, rows in topic space."""

from mmpca.topics.lda import learn_topics
from mmpca.topics.rows import topic_shares

__all__ = ["learn_topics", "topic_shares"]

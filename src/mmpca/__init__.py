"""Clustering of count data through a mixture of multinomial PCA."""

__version__ = "0.1.0.dev0"

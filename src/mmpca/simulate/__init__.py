"""Count data drawn from the model: any design, the paper's design, random topics; and synthetic texts."""

from mmpca.simulate.designs import paper_design, sparse_topics
from mmpca.simulate.generative import Simulation, simulate_mmpca
from mmpca.simulate.reports import Reports, pathology_reports

__all__ = ["Reports", "Simulation", "paper_design", "pathology_reports", "simulate_mmpca", "sparse_topics"]

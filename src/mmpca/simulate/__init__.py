"""Count data drawn from the model: any parameters, the paper's design, random topics."""

from mmpca.simulate.designs import paper_design, sparse_topics
from mmpca.simulate.generative import Simulation, simulate_mmpca

__all__ = ["Simulation", "paper_design", "simulate_mmpca", "sparse_topics"]

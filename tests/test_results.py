"""Results of a fixed set of fits, recorded: a change of results is a decision, noted in CHANGELOG.md.

``python tests/test_results.py`` records them again. On the processor and library versions they were recorded with, the
results must agree bit for bit; elsewhere, labels must be equal, apart from those that hang on scikit-learn's last bits,
and numbers must agree to nine digits.
"""

import hashlib
import json
import os
import warnings
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding
import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from mmpca import MMPCA, MMPCASearch, baselines, distributed
from mmpca.paper import pathology_reports
from mmpca.simulate import paper_design, simulate_mmpca
from mmpca.topics import LDA

RECORD = Path(__file__).with_name("results.json")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
FRAGILE = ("GMMLDA", "KMeansLDA", "LDAMap")  # labels from hundreds of iterations of scikit-learn's LDA


def small():
    """Return data from the paper's design."""
    return paper_design(n_samples=120, noise=0.2, random_state=0)


def many_rows():
    """Return enough rows for starts to be tried on a sample, and for topics to start from main directions."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.2), 3)
    shares = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]])
    return simulate_mmpca(51_000, topics=topics, cluster_topics=shares, lengths=80, random_state=1)


def of_model(model, X=None):
    """Return the fitted attributes of a model and, given rows, its predictions for them."""
    found = {
        name: getattr(model, name)
        for name in (
            "labels_", "bound_", "icl_", "bound_history_", "components_", "cluster_topics_", "weights_",
            "cluster_topic_params_", "overdispersion_", "cluster_overdispersion_", "smoothing_",
        )
    }  # fmt: skip
    if hasattr(model, "refit_bound_"):
        names = ("refit_bound_", "refit_components_", "refit_cluster_topics_")
        found |= {name: getattr(model, name) for name in names}
    if X is not None:
        model.temperature_ = 1.0  # probabilities of the published model; the estimate takes longer than the fit
        found |= {"predict": model.predict(X), "predict_proba": model.predict_proba(X), "score": model.score(X)}
        found |= {"transform": model.transform(X)}
    return found


def fitted(**parameters):
    """Return a function that fits small data with these parameters."""

    def run():
        X = small().X
        return of_model(MMPCA(6, 4, random_state=0, **parameters).fit(X), X)

    return run


def from_labels():
    """Fit from given labels and topics."""
    data = small()
    start = np.arange(120) % 6
    return of_model(MMPCA(6, 4, start=start, topics=data.topics, random_state=0).fit(data.X))


def with_known_labels():
    """Fit rows of which some have known labels, and seeded topics."""
    known = np.where(np.arange(120) % 8 == 0, small().labels, -1)
    model = MMPCA(6, 4, n_init=2, random_state=0)
    return of_model(model.fit(small().X, labels=known)) | {
        f"seeded {name}": value for name, value in of_model(model.fit(small().X, seed_topics={"first": [3, 9]})).items()
    }


def overdispersed():
    """Fit counts in bursts, whose units are chosen by comparing halves of the features."""
    rng = np.random.default_rng(0)
    means = 150 * rng.dirichlet(np.full(24, 0.5), 3)[np.arange(60) % 3]  # (N, V)
    X = rng.poisson(rng.gamma(means / 7 + 1e-9, 7))
    model = MMPCA(3, 3, n_init=2, random_state=0).fit(X)
    return of_model(model) | {"is_polya": model.dispersion_ == "polya", "is_root": model.stabilize_ == "sqrt"}


def large():
    """Fit many rows."""
    return of_model(MMPCA(4, 3, random_state=0).fit(many_rows().X))


def in_blocks():
    """Fit rows that are in blocks."""
    X = small().X
    return of_model(distributed.fit(MMPCA(6, 4, n_init=3, random_state=0), [X[:50], X[50:60], X[60:]]))


def short_wide_rows():
    """Fit short rows of many features, as real texts have them."""
    texts = pathology_reports(150, random_state=0)
    from mmpca.text import CountTexts

    X = CountTexts(stop_words="english").fit_transform(texts.texts)
    return of_model(MMPCA(5, 5, n_init=3, random_state=0).fit(X), X[:20])


def search():
    """Choose the numbers of clusters and topics."""
    found = MMPCASearch(n_clusters=(5, 6, 7), n_topics=(3, 4), n_init=2, random_state=0).fit(small().X)
    results = found.results_
    columns = results if isinstance(results, dict) else results._asdict() if hasattr(results, "_asdict") else results
    numbers = {name: np.asarray(columns[name]) for name in columns if not name.startswith("seconds")}
    return {name: values for name, values in numbers.items() if values.dtype.kind in "biuf"} | of_model(
        found.best_estimator_
    )


def explained():
    """Explain rows, sample new ones and merge clusters."""
    X = small().X
    model = MMPCA(6, 4, n_init=1, random_state=0).fit(X)
    reasons = model.explain(X, [3, 50, 110])
    path = model.merge_path()
    drawn, labels = model.sample(20, random_state=0)
    return {
        "temperature": model.temperature_,
        "clusters": [why.cluster for why in reasons],
        "numbers": [x for why in reasons for x in (why.probability, why.margin, why.from_sizes, why.from_others)],
        "gains": [other.gain for why in reasons for other in why.alternatives if other.gain is not None],
        "evidence": [part.nats for why in reasons for part in why.evidence_for + why.evidence_against],
        "linkage": path.linkage,
        "bounds": path.bounds,
        "sample": drawn,
        "sample_labels": labels,
    }


def lda():
    """Learn topics."""
    X = small().X
    model = LDA(4, random_state=0).fit(X)
    return {"components": model.components_, "prior": model.row_prior_, "transform": model.transform(X)}


def of_baselines():
    """Cluster with every baseline."""
    X = small().X
    names = sorted(baselines.__all__)
    return {name: getattr(baselines, name)(6, random_state=0).fit(X).labels_ for name in names}


FITS = {
    "default": fitted(),
    "two threads": fitted(n_jobs=2),
    "exact": fitted(algorithm="exact", n_init=2),
    "cvem": fitted(algorithm="cvem", n_init=3),
    "vbem": fitted(algorithm="vbem", n_init=3),
    "random start": fitted(start="random", n_init=2),
    "k-means start": fitted(start="kmeans", n_init=2),
    "annealed start": fitted(start="anneal", n_init=2),
    "square roots": fitted(stabilize="sqrt", n_init=2),
    "bursts": fitted(dispersion="polya", n_init=2),
    "varying shares": fitted(dispersion="shares", n_init=2),
    "overdispersed": overdispersed,
    "mixture topics": fitted(topics="mixture", n_init=2),
    "topics from tf-idf": fitted(topics="tfidf", n_init=2),
    "estimated prior": fitted(topic_prior="estimate", n_init=2),
    "known labels": with_known_labels,
    "small prior": fitted(topic_prior=0.5, n_init=2),
    "random topics": fitted(topics="random", n_init=2),
    "with refit": fitted(refit_topics=True, n_init=2),
    "no epochs": fitted(max_epochs=0, n_init=1),
    "given labels": from_labels,
    "many rows": large,
    "blocks": in_blocks,
    "texts": short_wide_rows,
    "search": search,
    "explanations": explained,
    "lda": lda,
    "baselines": of_baselines,
    "paper design": lambda: {"X": small().X, "labels": small().labels, "topics": small().topics},
    "simulation": lambda: {"X": many_rows().X, "labels": many_rows().labels},
}


def summary(value):
    """Return a digest of an array, and what can be compared where rounding differs: whole numbers, or projections."""
    values = value.toarray() if sparse.issparse(value) else np.asarray(value)
    if values.dtype.kind in "biu":
        values = values.astype(np.int64)
        return {"digest": hashlib.sha256(values.tobytes()).hexdigest()[:16]}
    values = np.atleast_1d(values.astype(np.float64))
    weights = np.cos(np.arange(values.size))
    numbers = [float(np.nansum(values)), float(np.nansum(values.ravel() * weights)), float(np.nansum(values**2))]
    return {"digest": hashlib.sha256(values.tobytes()).hexdigest()[:16], "numbers": numbers}


def computed(name):
    """Return the summaries of one fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {part: summary(value) for part, value in FITS[name]().items()}


def machine():
    """Return whatever can change the last bits of a sum: processor, BLAS and its settings, versions of libraries.

    The name that the system gives the processor is not enough: virtual machines call several generations by the same
    name. OpenBLAS chooses its code by the processor, unless environment variables say otherwise.
    """
    blas = {library["architecture"] for library in threadpool_info() if "architecture" in library}
    settings = {
        name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_") and "THREADS" not in name
    }
    found = {"processor": llvmlite.binding.get_host_cpu_name(), "blas": sorted(blas), "settings": settings}
    return found | {name: version(name) for name in LIBRARIES}


@pytest.mark.parametrize("name", FITS)
def test_results_are_those_recorded(name):
    recorded = json.loads(RECORD.read_text())
    expected, found = recorded["fits"][name], computed(name)
    assert found.keys() == expected.keys()
    is_same_machine = recorded["machine"] == machine()
    for part, value in expected.items():
        if is_same_machine or ("numbers" not in value and part not in FRAGILE):
            assert found[part]["digest"] == value["digest"], part
        if "numbers" in value:
            np.testing.assert_allclose(found[part]["numbers"], value["numbers"], rtol=1e-9, atol=1e-9, err_msg=part)


if __name__ == "__main__":
    results = {"machine": machine(), "fits": {name: computed(name) for name in FITS}}
    RECORD.write_text(json.dumps(results, indent=1) + "\n")

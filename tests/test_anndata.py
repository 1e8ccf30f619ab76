"""Results equal those of the estimator and are stored where scverse tools expect them."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from mmpca import MMPCA
from mmpca.errors import CountsError
from mmpca.simulate import paper_design

anndata = pytest.importorskip("anndata")
from mmpca.anndata import cluster  # noqa: E402

OPTIONS = {"n_clusters": 6, "n_topics": 4, "n_init": 1, "random_state": 0}


@pytest.fixture(scope="module")
def counts():
    return paper_design(n_samples=80, random_state=0).X


@pytest.fixture(scope="module")
def model(counts):
    return MMPCA(**OPTIONS).fit(counts)


@pytest.fixture
def adata(counts):
    adata = anndata.AnnData(counts.astype(np.float32))
    adata.obs_names = [f"cell{i}" for i in range(adata.n_obs)]
    return adata


def test_results_equal_those_of_the_estimator(adata, counts, model):
    assert cluster(adata, **OPTIONS) is None
    np.testing.assert_array_equal(adata.obs["mmpca"].astype(int), model.labels_)
    np.testing.assert_array_equal(adata.obsm["X_mmpca"], model.transform(counts))
    np.testing.assert_array_equal(adata.varm["mmpca_topics"], model.components_.T)
    np.testing.assert_array_equal(adata.uns["mmpca"]["cluster_topics"], model.cluster_topics_)
    assert adata.uns["mmpca"]["bound"] == model.bound_
    assert adata.uns["mmpca"]["icl"] == model.icl_


def test_labels_are_categories_of_every_cluster(adata):
    cluster(adata, **OPTIONS)
    assert adata.obs["mmpca"].dtype == "category"
    assert adata.obs["mmpca"].cat.categories.to_list() == ["0", "1", "2", "3", "4", "5"]


def test_a_copy_leaves_the_original_alone(adata):
    result = cluster(adata, copy=True, key_added="again", **OPTIONS)
    assert not adata.obs.columns.size
    assert not adata.uns
    assert {"again"} == set(result.obs) == set(result.uns)
    assert set(result.obsm) == {"X_again"}
    assert set(result.varm) == {"again_topics"}


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, lambda X: X.toarray()])
def test_layers_of_any_format_can_be_clustered(counts, model, form):
    adata = anndata.AnnData(np.log1p(counts.toarray()), layers={"counts": form(counts)})
    cluster(adata, layer="counts", **OPTIONS)
    np.testing.assert_array_equal(adata.obs["mmpca"].astype(int), model.labels_)
    assert adata.uns["mmpca"]["params"]["layer"] == "counts"


def test_results_survive_a_file(adata, tmp_path):
    cluster(adata, start=np.arange(80) % 6, **OPTIONS)
    adata.write_h5ad(tmp_path / "X.h5ad")
    read = anndata.read_h5ad(tmp_path / "X.h5ad")
    assert read.obs["mmpca"].equals(adata.obs["mmpca"])
    assert read.uns["mmpca"]["params"]["n_clusters"] == 6
    assert "n_jobs" not in read.uns["mmpca"]["params"]
    np.testing.assert_array_equal(read.uns["mmpca"]["params"]["start"], np.arange(80) % 6)


@pytest.mark.parametrize("form", [sparse.csr_matrix, lambda X: X.toarray()])
def test_counts_that_stay_in_their_file_are_clustered(counts, model, form, tmp_path):
    anndata.AnnData(form(counts).astype(np.float32)).write_h5ad(tmp_path / "X.h5ad")
    backed = anndata.read_h5ad(tmp_path / "X.h5ad", backed="r")
    copied = cluster(backed, copy=True, **OPTIONS)
    cluster(backed, **OPTIONS)
    for one in (backed, copied):
        np.testing.assert_array_equal(one.obs["mmpca"].astype(int), model.labels_)
    assert backed.isbacked
    assert not copied.isbacked


def test_a_view_is_clustered(adata):
    part = adata[:50]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", anndata.ImplicitModificationWarning)  # the view becomes a copy
        cluster(part, **OPTIONS)
    assert len(part.obs["mmpca"]) == 50


def test_a_missing_layer_is_refused_and_nothing_is_added(adata):
    with pytest.raises(ValueError, match="raw"):
        cluster(adata, layer="raw", **OPTIONS)
    assert not adata.obs.columns.size


def test_an_object_without_x_is_refused_and_its_layers_are_named(counts):
    with pytest.raises(ValueError, match="counts"):
        cluster(anndata.AnnData(layers={"counts": counts.toarray()}), **OPTIONS)


def test_logarithms_are_refused(counts):
    with pytest.raises(CountsError):
        cluster(anndata.AnnData(np.log1p(counts.toarray())), **OPTIONS)

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

OPTIONS = {"n_clusters": 6, "n_topics": 4, "topics": "lda", "n_init": 1, "random_state": 0}


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
    returned = cluster(adata, **OPTIONS)
    assert returned.labels_.tolist() == model.labels_.tolist()
    assert returned.feature_names_in_.tolist() == adata.var_names.tolist()
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
    assert set(result.uns) == {"again"}
    assert set(result.obs) == {"again", "again_probability"}
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


def test_backed_and_lazy_objects_give_the_same_labels(adata, model, tmp_path):
    adata.write_h5ad(tmp_path / "X.h5ad")
    backed = anndata.read_h5ad(tmp_path / "X.h5ad", backed="r")
    cluster(backed, **OPTIONS)
    assert backed.obs["mmpca"].astype(int).tolist() == model.labels_.tolist()
    backed.file.close()
    lazy = anndata.experimental.read_lazy(tmp_path / "X.h5ad")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of xarray
        result = cluster(lazy, 6, 4, n_init=1, random_state=0, copy=True)
        assert cluster(lazy, **OPTIONS).labels_.tolist() == model.labels_.tolist()
    assert result.obs["mmpca"].astype(int).tolist() == model.labels_.tolist()


def test_variables_can_be_masked(adata, counts):
    used = np.asarray(counts.sum(axis=0)) > 30
    adata.var["used"] = used
    masked = MMPCA(**OPTIONS).fit(counts[:, used])
    for mask in ("used", used):
        assert cluster(adata, mask_var=mask, **OPTIONS).labels_.tolist() == masked.labels_.tolist()
        np.testing.assert_array_equal(adata.varm["mmpca_topics"][used], masked.components_.T)
        assert not adata.varm["mmpca_topics"][~used].any()
    for wrong in ("other", used[:-1], used.astype(int)):
        with pytest.raises(ValueError, match="mask_var"):
            cluster(adata, mask_var=wrong, **OPTIONS)


def test_raw_counts_can_be_used(adata, model):
    adata.raw = adata.copy()
    reduced = adata[:, ::2].copy()
    reduced.X = np.log1p(reduced.X.toarray())
    with pytest.raises(CountsError, match="use_raw=True"):
        cluster(reduced, **OPTIONS)
    assert cluster(reduced, use_raw=True, **OPTIONS).labels_.tolist() == model.labels_.tolist()
    np.testing.assert_array_equal(reduced.varm["mmpca_topics"], model.components_.T[::2])


def test_the_layer_with_counts_is_named(adata):
    adata.layers["umis"] = adata.X.copy()
    adata.layers["scaled"] = adata.X / 3
    adata.X = np.log1p(adata.X.toarray())
    with pytest.raises(CountsError, match=r"layer='umis'\."):
        cluster(adata, **OPTIONS)


def test_numbers_that_are_not_given_are_chosen(adata):
    model = cluster(adata, n_topics=4, random_state=0)
    assert model.n_topics == 4
    assert len(adata.uns["mmpca"]["reason"]) > 20
    assert len(adata.obs["mmpca"].cat.categories) == model.n_clusters


def test_probabilities_and_markers_can_be_written(adata, counts, model, tmp_path):
    cluster(adata, **OPTIONS)
    own = model.leave_one_out_proba(counts)[np.arange(80), model.labels_]
    np.testing.assert_array_equal(adata.obs["mmpca_probability"], own)
    adata.write_h5ad(tmp_path / "X.h5ad")
    read = anndata.read_h5ad(tmp_path / "X.h5ad").uns["mmpca"]
    markers = read["markers"]
    assert set(markers["cluster"]) == set("012345")
    assert set(markers["variable"]) <= set(adata.var_names)
    assert read["names"].tolist() == model.name_features(adata.var_names).cluster_names_.tolist()


def test_clusters_that_follow_batches_are_told(adata, model):
    adata.obs["plate"] = [f"p{q}" for q in model.labels_]
    with pytest.warns(UserWarning, match="batches"):
        cluster(adata, batch_key="plate", **OPTIONS)
    assert np.diag(adata.uns["mmpca"]["batches"]).sum() == 80
    adata.obs["plate"] = ["a", "b"] * 40
    cluster(adata, batch_key="plate", **OPTIONS)
    with pytest.raises(ValueError, match="batch_key"):
        cluster(adata, batch_key="other", **OPTIONS)


def test_cells_without_counts_and_repeated_genes_are_noted(adata):
    adata.X = sparse.csr_array(adata.X.toarray() * (np.arange(80) != 5)[:, None])
    adata.var_names = ["gene", "gene", *adata.var_names[2:]]
    with pytest.warns(UserWarning, match="'gene'"), pytest.warns(UserWarning, match="no counts"):
        cluster(adata, **OPTIONS)
    assert adata.obs["mmpca"].isna().tolist() == [i == 5 for i in range(80)]

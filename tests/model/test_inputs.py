"""Every kind of count matrix gives the same fit and is not modified; scikit-learn's tools work with the estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from mmpca import MMPCA
from mmpca.errors import CountsError
from mmpca.topics import LDA

METHODS = ("predict", "predict_proba", "score", "transform")


def reversed_rows(X):
    """Return a CSR array with column indices in descending order in each row."""
    csr = sparse.csr_array(X)
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        csr.indices[start:stop] = csr.indices[start:stop][::-1].copy()
        csr.data[start:stop] = csr.data[start:stop][::-1].copy()
    csr.has_sorted_indices = False
    assert (csr.toarray() == X).all()
    return csr


def with_duplicates(X):
    """Return a COO array that stores every count in two entries."""
    rows, columns = np.nonzero(X)
    ones = np.ones(len(rows), dtype=X.dtype)
    data = np.concatenate([ones, X[rows, columns] - 1])
    return sparse.coo_array((data, (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape)


def with_wide_indices(X):
    csr = sparse.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def with_stored_zeros(X):
    csr = sparse.csr_array(np.maximum(X, 1))
    csr.data[:] = X.ravel()
    return csr


KINDS = {
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "csc_array": sparse.csc_array,
    "coo with duplicates": with_duplicates,
    "lil": sparse.lil_array,
    "dok": sparse.dok_array,
    "unsorted indices": reversed_rows,
    "64-bit indices": with_wide_indices,
    "stored zeros": with_stored_zeros,
    "sparse float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X.astype(np.float64),
    "int8": lambda X: X.astype(np.int8),
    "uint16": lambda X: X.astype(np.uint16),
    "int64": lambda X: X.astype(np.int64),
    "objects": lambda X: X.astype(object),
    "columns contiguous": np.asfortranarray,
    "strided view": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "other byte order": lambda X: X.astype(">i4"),
    "list of lists": lambda X: X.tolist(),
    "data frame": lambda X: pd.DataFrame(X),
    "sparse data frame": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
    "extension types": lambda X: pd.DataFrame(X).astype("Int64"),
}


@pytest.fixture(params=KINDS)
def kind(request, X):
    return KINDS[request.param](X)


def content(X):
    """Return a copy of the contents of a matrix."""
    if sparse.issparse(X) and X.format in ("csr", "csc"):
        return tuple(array.copy() for array in (X.data, X.indices, X.indptr))
    if sparse.issparse(X) and X.format == "coo":
        return (X.data.copy(), *(axis.copy() for axis in X.coords))
    if sparse.issparse(X):
        return (X.toarray(),)
    return (np.array(X),)


@pytest.fixture(scope="module")
def reference(X):
    return MMPCA(4, 3, topics="lda", n_init=1, temperature=1, random_state=0).fit(X)


def test_every_kind_of_input_gives_the_same_fit_and_is_not_modified(X, kind, reference, same_fit):
    before = content(kind)
    model = MMPCA(4, 3, topics="lda", n_init=1, temperature=1, random_state=0).fit(kind)
    same_fit(model, reference)
    for method in METHODS:
        np.testing.assert_array_equal(getattr(model, method)(kind), getattr(reference, method)(X))
    for array, old in zip(content(kind), before, strict=True):
        assert array.dtype == old.dtype
        np.testing.assert_array_equal(array, old)


def of_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def backed(frame, path, *, is_sparse):
    """Return the counts of an AnnData object whose values stay in a file."""
    anndata = pytest.importorskip("anndata")
    X = frame.to_numpy().astype(np.float32)
    anndata.AnnData(sparse.csr_matrix(X) if is_sparse else X).write_h5ad(path)
    return anndata.read_h5ad(path, backed="r").X


TABLES = {
    "polars": lambda frame, path: of_polars(frame),
    "lazy frame of polars": lambda frame, path: of_polars(frame).lazy(),
    "pyarrow": lambda frame, path: pytest.importorskip("pyarrow").Table.from_pandas(frame),
    "xarray": lambda frame, path: pytest.importorskip("xarray").DataArray(frame, dims=("site", "species")),
    "DuckDB": lambda frame, path: pytest.importorskip("duckdb").connect().from_df(frame),
    "backed AnnData": lambda frame, path: backed(frame, path, is_sparse=False),
    "backed sparse AnnData": lambda frame, path: backed(frame, path, is_sparse=True),
}


@pytest.mark.filterwarnings("ignore::anndata.ImplicitModificationWarning")
@pytest.mark.parametrize("table", TABLES)
def test_tables_of_other_libraries_give_the_same_fit_and_keep_their_names(X, reference, tmp_path, table):
    names = [f"species{v}" for v in range(X.shape[1])]
    held = TABLES[table](pd.DataFrame(X, columns=names), tmp_path / "X.h5ad")
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(held)
    assert getattr(model, "feature_names_in_", np.array(names)).tolist() == names
    assert hasattr(model, "feature_names_in_") == (not table.startswith("backed"))
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    np.testing.assert_array_equal(model.predict(held), reference.predict(X))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_column_of_text_among_counts_is_an_error_that_names_it(X, library):
    frame = pd.DataFrame(X).add_prefix("v").assign(site=[f"s{i}" for i in range(len(X))])
    table = {
        "pandas": lambda: frame,
        "polars": lambda: of_polars(frame),
        "pyarrow": lambda: TABLES["pyarrow"](frame, ""),
    }
    for estimator in (MMPCA(4, 3), LDA(3)):
        with pytest.raises(CountsError, match="'site'") as caught:
            estimator.fit(table[library]())
        assert (caught.value.row, caught.value.column) == (0, X.shape[1])


@pytest.mark.parametrize("estimator", [MMPCA(2, 2), LDA(2)])
def test_texts_are_an_error_that_names_the_class_for_texts(estimator):
    for texts in (["a boat", "a tide"], pd.Series(["a boat", "a tide"]), "a boat"):
        with pytest.raises(CountsError, match="TextClusters"):
            estimator.fit(texts)


def test_rows_are_named_by_the_coordinates_of_an_xarray_object(X):
    names = [f"site {i}" for i in range(len(X))]
    array = pytest.importorskip("xarray").DataArray(X, dims=("site", "species"), coords={"site": names})
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(array)
    assert model.rows_frame(array)["row"].tolist() == names
    assert set(model.clusters_frame(array)["representative_rows"].explode()) <= set(names)


def test_an_anndata_object_is_an_error_that_says_what_to_pass(X):
    anndata = pytest.importorskip("anndata")
    with pytest.raises(CountsError, match=r"mmpca\.anndata"):
        MMPCA(4, 3).fit(anndata.AnnData(X.astype(np.float32)))


@pytest.mark.parametrize("name", ["csr_array", "float64", "int32"])
def test_square_roots_do_not_modify_the_input(X, name):
    kind = sparse.csr_array(X.astype(np.int32)) if name == "csr_array" else X.astype(name)
    before = content(kind)
    MMPCA(4, 3, topics="lda", n_init=1, stabilize="sqrt", random_state=0).fit(kind).predict(kind)
    for array, old in zip(content(kind), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_a_fit_keeps_no_reference_to_its_input(X):
    mine = sparse.csr_array(X.astype(np.int32))
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(mine)
    answers = [getattr(model, method)(X) for method in METHODS]
    mine.data[:] = 1
    for method, before in zip(METHODS, answers, strict=True):
        np.testing.assert_array_equal(getattr(model, method)(X), before)


# --- names ------------------------------------------------------------------------------------------------------


@pytest.fixture
def frame(X):
    return pd.DataFrame(X, columns=[f"word{v}" for v in range(25)], index=[f"text{i}" for i in range(80)])


def test_feature_names_of_a_data_frame_are_kept_and_required_again(frame, reference, same_fit):
    named = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(frame)
    assert named.feature_names_in_.tolist() == frame.columns.tolist()
    same_fit(named, reference, leaving_out=("feature_names_in_",))
    swapped = frame[["word1", "word0", *frame.columns[2:]]]
    for method in METHODS:
        for wrong in (swapped, frame.rename(columns={"word3": "other"})):
            with pytest.raises(ValueError, match="feature names"):  # scikit-learn's message
                getattr(named, method)(wrong)


def test_a_matrix_without_names_forgets_those_of_an_earlier_fit(frame, X):
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(frame).fit(X)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("method", METHODS)
def test_another_number_of_features_is_an_error(X, model, method):
    with pytest.raises(ValueError, match="24 features"):
        getattr(model, method)(X[:, :-1])


def test_transform_returns_a_data_frame_if_configured(frame):
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(frame)
    assert model.get_feature_names_out().tolist() == ["mmpca0", "mmpca1", "mmpca2"]
    plain = model.transform(frame)
    shares = model.set_output(transform="pandas").transform(frame)
    assert isinstance(shares, pd.DataFrame)
    assert shares.columns.tolist() == ["mmpca0", "mmpca1", "mmpca2"]
    assert shares.index.equals(frame.index)
    np.testing.assert_array_equal(shares.to_numpy(), plain)


# --- scikit-learn's tools ---------------------------------------------------------------------------------------


def test_a_clone_has_the_same_parameters_and_is_not_fitted(data, X):
    labels = np.arange(80) % 4
    model = MMPCA(4, 3, topics=data.topics, start=labels, topic_prior=0.5, max_epochs=1, random_state=3).fit(X)
    copy = clone(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    assert copy.get_params().keys() == model.get_params().keys()
    for name, value in model.get_params().items():
        np.testing.assert_array_equal(copy.get_params()[name], value)
    assert copy.topics is not model.topics


def test_fitting_does_not_change_parameters(X):
    model = MMPCA(4, 3, topics="lda", n_init="auto", n_jobs=None, random_state=0)
    before = model.get_params()
    assert model.fit(X).get_params() == before


def test_a_pickled_model_predicts_the_same(X, model, same_fit):
    copy = pickle.loads(pickle.dumps(model))
    same_fit(copy, model)
    for method in METHODS:
        np.testing.assert_array_equal(getattr(copy, method)(X), getattr(model, method)(X))
    for ours, theirs in zip(copy.sample(5, random_state=0), model.sample(5, random_state=0), strict=True):
        assert (ours != theirs).sum() == 0


def test_texts_are_clustered_in_a_pipeline_with_a_vectorizer():
    rng = np.random.default_rng(0)
    words = [["star", "orbit", "planet", "comet"], ["oven", "flour", "butter", "sugar"]]
    truth = np.arange(30) % 2
    texts = [" ".join(rng.choice(words[subject], size=12)) for subject in truth]
    pipeline = make_pipeline(CountVectorizer(), MMPCA(2, 2, random_state=0))
    assert adjusted_rand_score(truth, pipeline.fit_predict(texts)) == 1
    assert pipeline.transform(texts).shape == (30, 2)
    assert pipeline[:1].get_feature_names_out().size == pipeline[-1].n_features_in_ == 8
    new = pipeline.predict(["planet comet star", "sugar and flour", "nothing known"])
    assert new[0] == pipeline.predict(texts)[0]
    assert new[1] == pipeline.predict(texts)[1]


def test_grid_search_finds_the_number_of_clusters_by_the_score(X):
    search = GridSearchCV(
        MMPCA(n_topics=3, topics="lda", n_init=1, random_state=0), {"n_clusters": [1, 4]}, cv=3, error_score="raise"
    ).fit(X)
    assert search.best_params_ == {"n_clusters": 4}
    assert search.best_score_ > search.cv_results_["mean_test_score"][0] + 1
    assert search.predict(X).shape == (80,)


def test_the_estimator_has_a_representation_for_notebooks(model):
    assert "MMPCA" in model._repr_html_()
    assert repr(MMPCA(4, 3)) == "MMPCA(n_clusters=4, n_topics=3)"


@pytest.mark.parametrize("estimator", [MMPCA(2, 2, topics="lda", n_init=1, random_state=0), LDA(2, random_state=0)])
def test_masked_entries_are_an_error_rather_than_counts(estimator):
    X = np.random.default_rng(0).poisson(3, (20, 5)) + 1
    fitted = clone(estimator).fit(X)
    X[7, 3] = 99_999
    masked = np.ma.masked_equal(X, 99_999)
    for call in (clone(estimator).fit, fitted.score, fitted.transform):
        with pytest.raises(CountsError) as caught:
            call(masked)
        assert (caught.value.row, caught.value.column) == (7, 3)


def masked_after(values, n):
    """Return an array in which all but the first `n` entries are masked."""
    return np.ma.masked_array(values, np.arange(values.size).reshape(values.shape) >= n)


def test_masked_parameters_are_an_error_rather_than_what_is_behind_the_mask():
    X = np.random.default_rng(0).poisson([[9, 1, 2], [1, 9, 2]] * 6) + 1
    model = MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(X)
    labels, topics = masked_after(model.labels_, 5), masked_after(model.components_, 2)
    for call, name in (
        (lambda: MMPCA(2, 2, start=labels).fit(X), "start"),
        (lambda: MMPCA(2, 2, topics=topics).fit(X), "topics"),
        (lambda: model.explain(X, [0], labels=labels), "labels"),
        (lambda: model.sample(12, lengths=masked_after(X.sum(axis=1), 3)), "lengths"),
    ):
        with pytest.raises(ValueError, match=name):
            call()

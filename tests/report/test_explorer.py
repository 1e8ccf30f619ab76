"""The report on a local server: access, search, filters and pages of rows."""

import errno
import html
import http.client
import json
import socket
import warnings
from threading import Event, Thread
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest

from mmpca.report import Explorer

NAMES = [f"letter {i}" for i in range(120)]


def start(model, **given):
    explorer = Explorer(model, **given)
    Thread(target=explorer.serve, daemon=True).start()
    return explorer


@pytest.fixture(scope="module")
def explorer(study):
    labels = [f"class {label}" for label in study.labels]
    texts = [f"the text of letter {i}, {'Übermut' if i == 7 else 'calm'}" for i in range(120)]
    with start(study.model, X=study.X, labels=labels, texts=texts, row_names=NAMES, title="Letters") as running:
        yield running


def ask(explorer, path="", *, method="GET", **headers):
    """Send a request and return the response and its text."""
    place = urlsplit(explorer.url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=600)
    target = path if path.startswith("/") else place.path + path
    connection.request(method, target, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8")
    connection.close()
    return answer, text


def listed(explorer, **query):
    answer, text = ask(explorer, f"rows?{urlencode(query)}")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    found = json.loads(text)
    return [row["name"] for row in found["rows"]], found


def test_the_report_is_served(explorer):
    answer, text = ask(explorer)
    assert answer.status == 200
    assert "<title>Letters</title>" in text
    assert text.count('class="group"') == 6


def test_all_rows_are_listed_in_the_order_of_the_data(explorer):
    names, found = listed(explorer, size=1000)
    assert names == NAMES
    assert found["n"] == 120
    assert listed(explorer)[0] == NAMES[:20]


@pytest.mark.parametrize("size", ["-1", "x", "", "1e3", "٣", "9" * 5000])
def test_an_invalid_size_gives_the_default(explorer, size):
    assert listed(explorer, size=size)[0] == NAMES[:20]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_are_filtered_and_ordered_on_the_server(explorer, study):
    reasons = study.model.explain(study.X, labels=study.model.labels_, n_features=0)
    members = [i for i in range(120) if study.model.labels_[i] == 2]
    by_margin = sorted(members, key=lambda i: (reasons[i].probability, reasons[i].margin))
    assert listed(explorer, cluster=2, order="least")[0] == [NAMES[i] for i in by_margin][:20]
    assert listed(explorer, cluster=2, order="surest")[0] == [NAMES[i] for i in by_margin[::-1]][:20]
    likely = [NAMES[i] for i in range(120) if reasons[i].verdict == "likely"]
    assert listed(explorer, verdict=1)[0] == likely[:20]


def test_rows_are_found_by_name_text_and_label_in_any_case(explorer, study):
    assert listed(explorer, find="LETTER 117")[0] == ["letter 117"]
    names, found = listed(explorer, find="übermut")
    assert names == ["letter 7"]
    assert found["rows"][0]["excerpt"] == [["", "the text of letter 7, ", "Übermut", ""]]
    of_class = [NAMES[i] for i in np.flatnonzero(study.labels == 3)][:20]
    assert listed(explorer, find="class 3")[0] == listed(explorer, label=3)[0] == of_class
    assert listed(explorer, find="no such thing")[0] == []


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_row_opens_with_its_whole_text_and_evidence_that_adds_up(explorer, study):
    row = json.loads(ask(explorer, "row?number=7")[1])
    [why] = study.model.explain(study.X, [7])
    assert row["text"] == "the text of letter 7, Übermut"
    assert (row["cluster"], row["verdict"], row["probability"]) == (why.cluster, why.verdict, why.probability)
    parts = [nats for _, _, nats in row["evidence"]] + [nats for _, nats in row["terms"]]
    assert sum(parts) == pytest.approx(row["margin"])
    assert row["margin"] == pytest.approx(why.margin)
    assert ask(explorer, "row?number=120")[0].status == ask(explorer, "row?number=x")[0].status == 404


def test_requests_do_not_touch_the_warning_filters_of_other_threads(explorer, monkeypatch):
    changed = []
    monkeypatch.setattr(warnings.catch_warnings, "__enter__", lambda self: changed.append(self))
    monkeypatch.setattr(warnings.catch_warnings, "__exit__", lambda self, *error: None)
    monkeypatch.setattr(warnings, "filterwarnings", lambda *given, **more: changed.append(given))
    assert "evidence" in ask(explorer, "row?number=5")[1]
    assert changed == []


def test_other_tokens_are_rejected(explorer):
    token = urlsplit(explorer.url).path.strip("/")
    for path in ("/", "/rows", f"/{token}", f"/{token}x/", f"/{token[:-1]}/", "//", "/../", f"/x/../{token}/", "/%00/"):
        answer, text = ask(explorer, path)
        assert answer.status == 403, path
        assert token not in text
        assert "letter" not in text
    assert len(token) >= 32


def test_each_server_has_its_own_token(explorer, study):
    with start(study.model) as other:
        assert urlsplit(other.url).path != urlsplit(explorer.url).path
        assert ask(other, urlsplit(explorer.url).path)[0].status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost", ""])
def test_requests_with_another_host_name_are_rejected(explorer, host):
    answer, text = ask(explorer, Host=host)
    assert answer.status == 403
    assert "letter" not in text


def test_the_host_name_may_be_localhost(explorer):
    assert ask(explorer, Host=f"localhost:{urlsplit(explorer.url).port}")[0].status == 200


def test_at_port_80_the_host_header_may_omit_the_port(study, monkeypatch):
    with Explorer(study.model) as explorer:
        monkeypatch.setattr(explorer._server, "server_port", 80)
        path = urlsplit(explorer.url).path
        for host in ("127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"):
            assert explorer.answer(host, path)[0] == 200
        for host in ("evil.example", "127.0.0.1:8080", "", None):
            assert explorer.answer(host, path)[0] == 403


def test_a_reader_who_disconnects_early_is_not_logged(study, monkeypatch, caplog, capfd):
    is_asked, has_left, is_over = Event(), Event(), Event()

    def slow(host, path):
        is_asked.set()
        assert has_left.wait(600)
        return 200, "text/html", "x" * 50_000_000  # more than the connection buffers

    with start(study.model) as explorer:
        monkeypatch.setattr(explorer, "answer", slow)
        finish = explorer._server.shutdown_request
        monkeypatch.setattr(explorer._server, "shutdown_request", lambda request: (finish(request), is_over.set()))
        with socket.create_connection(("127.0.0.1", urlsplit(explorer.url).port), timeout=600) as reader:
            reader.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert is_asked.wait(600)
        has_left.set()
        assert is_over.wait(600)
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_internal_errors_are_logged_without_the_token(study, monkeypatch, caplog):
    def fail(query):
        raise ValueError("an internal error")

    with start(study.model) as explorer:
        monkeypatch.setattr(explorer._rows, "find", fail)
        with pytest.raises(http.client.RemoteDisconnected):
            ask(explorer, "rows")
        assert ask(explorer)[0].status == 200
    assert "an internal error" in caplog.text
    assert urlsplit(explorer.url).path.strip("/") not in caplog.text


def test_other_methods_are_not_answered(explorer):
    assert ask(explorer, method="HEAD")[0].status == 200
    assert ask(explorer, method="HEAD")[1] == ""
    assert ask(explorer, method="POST")[0].status == 400
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert ask(explorer, method=method)[0].status == 501


def post(explorer, action, *, kind="application/json", path="edit"):
    place = urlsplit(explorer.url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=600)
    connection.request(
        "POST", path if path.startswith("/") else place.path + path, json.dumps(action), {"Content-Type": kind}
    )
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_edits_change_the_page_and_are_saved(study):
    saved = []
    with start(study.model, X=study.X, save=saved.append) as explorer:
        assert post(explorer, {"action": "rename", "cluster": 2, "name": "letters home"}) == 200
        assert saved[-1].cluster_names_[2] == "letters home"
        assert "letters home" in ask(explorer)[1]
        assert post(explorer, {"action": "merge", "cluster": 1, "other": 0}) == 200
        merged = np.where(study.model.labels_ == 0, 1, study.model.labels_) - 1
        np.testing.assert_array_equal(saved[-1].labels_, merged)
        assert saved[-1].cluster_names_[1] == "letters home"
        cluster = int((merged[5] + 1) % 5)
        assert post(explorer, {"action": "move", "row": 5, "cluster": cluster}) == 200
        assert saved[-1].labels_[5] == cluster
        assert (saved[-1].labels_ != merged).sum() == 1
        before = saved[-1].bound_
        assert post(explorer, {"action": "refit"}) == 200
        assert saved[-1].bound_ >= before
        assert saved[-1].cluster_names_[1] == "letters home"
        assert post(explorer, {"action": "split", "cluster": 0}) == 200
        assert len(saved[-1].weights_) == 6
        assert post(explorer, {"action": "noise", "cluster": 3}) == 200
        assert saved[-1].noise_clusters_.tolist() == [3]
        # What an edit does not concern stays: predictions, the source of the topics, the record of edits.
        assert saved[-1].smoothing_ == study.model.smoothing_
        assert saved[-1].topics_source_ == study.model.topics_source_
        assert [edit.kind for edit in saved[-1].edits_] == ["merge", "move", "split", "noise"]
    assert "_cluster_names" not in vars(study.model)


def test_rows_stay_where_they_are_on_the_map_and_the_temperature_is_that_before_the_edit(study):
    saved = []
    with start(study.model, X=study.X, save=saved.append) as explorer:
        before = data_of(ask(explorer)[1])["rows"]
        for action in ({"action": "merge", "cluster": 1, "other": 0}, {"action": "split", "cluster": 2}):
            assert post(explorer, action) == 200
        after = data_of(ask(explorer)[1])["rows"]
    assert after["cluster"] != before["cluster"]
    assert (after["x"], after["y"]) == (before["x"], before["y"])
    assert [model.temperature_ for model in saved] == [study.model.temperature_] * 2


def data_of(page):
    """Return the data of the script of a page."""
    return json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])


@pytest.fixture(scope="module")
def editable(study):
    """Return a server whose model can be edited, and the models that it saves."""
    saved = []
    with start(study.model, X=study.X, save=saved.append) as explorer:
        yield explorer, saved


@pytest.mark.parametrize(
    "action",
    [
        {"action": "merge", "cluster": 1, "other": 1},
        {"action": "merge", "cluster": 6, "other": 1},
        {"action": "move", "row": 120, "cluster": 0},
        {"action": "move", "row": "0", "cluster": 0},
        {"action": "explode"},
        {},
        [],
    ],
)
def test_invalid_edits_change_nothing(editable, action):
    explorer, saved = editable
    assert post(explorer, action) == 400
    assert saved == []


def test_edits_need_the_data_the_token_and_json(explorer, editable, study):
    action = {"action": "rename", "cluster": 0, "name": "x"}
    assert post(explorer, action) == 403  # nowhere to save it
    saved = []
    with start(study.model, save=saved.append) as other:
        assert post(other, action) == 403
    other, saved_there = editable
    assert post(other, action, kind="text/plain") == 400
    assert post(other, action, path="/x/edit") == 403
    assert post(other, action, path="rows") == 404
    assert saved == saved_there == []


def test_other_paths_are_not_found_and_malformed_ones_do_no_harm(explorer):
    assert ask(explorer, "../../etc/passwd")[0].status in (403, 404)
    assert ask(explorer, "rows/1")[0].status == 404
    assert ask(explorer, "rows?" + "&".join("a=1" for _ in range(500)))[0].status == 400
    assert ask(explorer)[0].status == 200


def test_headers_forbid_caching_framing_and_referrers(explorer):
    answer, text = ask(explorer)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert "default-src 'none'" in text
    assert "connect-src 'self'" in html.unescape(text)


def test_the_server_listens_on_the_loopback_address_only(explorer):
    assert explorer._server.server_address[0] == "127.0.0.1"
    own = [address[4][0] for address in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    for address in own:
        if not address.startswith("127."):
            with socket.socket() as probe:
                assert probe.connect_ex((address, urlsplit(explorer.url).port)) != 0


def test_a_port_in_use_is_rejected_and_closing_frees_it(study):
    with start(study.model) as first:
        port = urlsplit(first.url).port
        with pytest.raises(OSError) as error:  # noqa: PT011
            Explorer(study.model, port=port)
        assert error.value.errno == errno.EADDRINUSE
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_without_data_rows_are_listed_without_evidence(study):
    with start(study.model) as explorer:
        names, found = listed(explorer, cluster=1)
        assert names == [f"row {i}" for i in np.flatnonzero(study.model.labels_ == 1)][:20]
        assert found["rows"][0]["verdict"] is None
        assert ask(explorer, "row?number=0")[0].status == 404


@pytest.mark.parametrize("width", [1440, 390])
def test_a_reader_finds_a_row_and_opens_it(window, explorer, axe, width):
    from selenium.webdriver.support.wait import WebDriverWait

    window.open(explorer.url, width=width)
    window.find("#find")[0].send_keys("letter 11")
    wait = WebDriverWait(window.driver, 60)
    wait.until(lambda _: len(window.find("#found .name")) == 11)
    window.click("#found summary")
    wait.until(lambda _: window.find("#found .evidence"))
    assert "the text of letter 11" in window.shown("#found .whole")[0]
    assert window.layout_errors() == []
    window.run(axe)
    violated = window.driver.execute_async_script(
        "const done = arguments[0]; axe.run('#rows').then((found) => done(found.violations.map((rule) => rule.id)))"
    )
    assert violated == []
    assert [message for message in window.messages() if "favicon" not in message] == []
    hosts = {urlsplit(address).netloc for address in window.requests()}
    assert hosts == {urlsplit(explorer.url).netloc}


def test_a_reader_renames_a_cluster(window, study):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait

    saved = []
    with start(study.model, X=study.X, save=saved.append) as explorer:
        window.open(explorer.url)
        window.click(".strips [data-rename='0']")
        window.press("news from the palace", Keys.ENTER)
        WebDriverWait(window.driver, 60).until(
            lambda _: saved and "news from the palace" in window.texts(".strips bdi")
        )
    assert saved[0].cluster_names_[0] == "news from the palace"

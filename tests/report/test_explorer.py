"""The report on a local server: access, search, filters and pages of rows."""

import errno
import html
import http.client
import re
import socket
import warnings
from threading import Event, Thread
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
from sklearn.base import clone

from mmpca.report import Explorer
from mmpca.report.context import N_EVIDENCE, check_context, explain_rows
from mmpca.report.explorer import ROWS_PER_PAGE, Query, read_query

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


def names_on(text):
    return re.findall(r'<bdi class="name">(.*?)</bdi>', text)


def listed(explorer, **query):
    answer, text = ask(explorer, f"rows?{urlencode(query)}")
    assert answer.status == 200
    return names_on(text), text


def test_the_report_is_served_with_links_to_all_rows(explorer):
    answer, text = ask(explorer)
    assert answer.status == 200
    assert "<title>Letters</title>" in text
    assert 'href="rows?cluster=3"' in text
    assert text.count('class="group"') == 6


def test_every_row_is_on_one_page_in_the_order_of_the_data(explorer):
    pages = [listed(explorer, page=page)[0] for page in range(1, 6)]
    assert [len(page) for page in pages] == [ROWS_PER_PAGE] * 4 + [20]
    assert [name for page in pages for name in page] == NAMES


def test_links_between_pages_keep_the_query(explorer):
    _, text = listed(explorer, find="letter", order="surest", page=2)
    links = re.findall(r'<a href="rows\?([^"]*)">(First|Previous|Next|Last)</a>', text)
    asked = [(text, read_query(html.unescape(query))) for query, text in links]
    wanted = Query("letter", None, "", "surest")
    pages = (("First", 1), ("Previous", 1), ("Next", 3), ("Last", 5))
    assert asked == [(text, wanted._replace(page=page)) for text, page in pages]
    [count] = re.findall(r'id="count">(.*?)<', text)
    assert re.findall(r"\d+", count) == ["26", "50", "120"]


@pytest.mark.parametrize("page", ["0", "-1", "999999", "x", "", "1e3", "٣", "9" * 5000])
def test_a_page_number_that_does_not_exist_gives_one_that_does(explorer, page):
    names, _ = listed(explorer, page=page)
    assert names in (NAMES[:ROWS_PER_PAGE], NAMES[-20:])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_are_filtered_and_ordered_on_the_server(explorer, study):
    reasons = study.model.explain(study.X, labels=study.model.labels_, n_features=0)
    members = [i for i in range(120) if study.model.labels_[i] == 2]
    by_margin = sorted(members, key=lambda i: reasons[i].margin)
    assert listed(explorer, cluster=2, order="least")[0] == [NAMES[i] for i in by_margin][:ROWS_PER_PAGE]
    assert listed(explorer, cluster=2, order="surest")[0] == [NAMES[i] for i in by_margin[::-1]][:ROWS_PER_PAGE]
    likely = [NAMES[i] for i in range(120) if reasons[i].verdict == "likely"]
    assert listed(explorer, verdict="likely")[0] == likely[:ROWS_PER_PAGE]


def test_rows_are_found_by_name_text_and_label_in_any_case(explorer, study):
    assert listed(explorer, find="LETTER 117")[0] == ["letter 117"]
    assert listed(explorer, find="übermut")[0] == ["letter 7"]
    assert listed(explorer, find="class 3")[0] == [NAMES[i] for i in np.flatnonzero(study.labels == 3)][:ROWS_PER_PAGE]
    assert listed(explorer, find="no such thing")[0] == []


def test_rows_come_with_their_evidence(explorer):
    _, text = listed(explorer, find="letter 5")
    assert text.count('class="evidence"') == text.count("<li id=")


def test_requests_do_not_touch_the_warning_filters_of_other_threads(explorer, monkeypatch):
    changed = []
    monkeypatch.setattr(warnings.catch_warnings, "__enter__", lambda self: changed.append(self))
    monkeypatch.setattr(warnings.catch_warnings, "__exit__", lambda self, *error: None)
    monkeypatch.setattr(warnings, "filterwarnings", lambda *given, **more: changed.append(given))
    assert 'class="evidence"' in listed(explorer, find="letter 5")[1]
    assert changed == []


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("stabilize", [None, "sqrt"])
def test_evidence_is_that_of_the_model(study, stabilize):
    model = clone(study.model).set_params(stabilize=stabilize, n_init=1).fit(study.X)
    rows = explain_rows(check_context(model, study.X), [3, 50], "found")
    for row, why in zip(rows, model.explain(study.X, [3, 50], n_features=N_EVIDENCE), strict=True):
        assert row.why.margin == pytest.approx(why.margin)
        parts = why.evidence_for + why.evidence_against
        assert [nats for _, _, nats in row.evidence] == pytest.approx([part.nats for part in parts])


def test_queries_are_escaped(explorer):
    _, text = listed(explorer, find='"><script>alert(1)</script>', cluster="<b>", verdict="' x", order="<i>")
    assert "alert(1)" in text
    assert text.count("<script") == 2
    assert "<b>" not in text
    assert "<i>" not in text


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
        return 200, "x" * 50_000_000  # more than the connection buffers

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
        monkeypatch.setattr(explorer._pagination, "page", fail)
        with pytest.raises(http.client.RemoteDisconnected):
            ask(explorer, "rows")
        assert ask(explorer)[0].status == 200
    assert "an internal error" in caplog.text
    assert urlsplit(explorer.url).path.strip("/") not in caplog.text


def test_only_get_and_head_are_answered(explorer):
    assert ask(explorer, method="HEAD")[0].status == 200
    assert ask(explorer, method="HEAD")[1] == ""
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(explorer, method=method)[0].status == 501


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
    assert "form-action 'self'" in html.unescape(text)


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
        names, text = listed(explorer, cluster=1)
        assert names == [f"row {i}" for i in np.flatnonzero(study.model.labels_ == 1)][:ROWS_PER_PAGE]
        assert 'class="evidence"' not in text
        assert 'id="verdict"' not in text


@pytest.mark.parametrize("width", [1280, 400])
def test_a_reader_finds_a_row_and_returns_to_the_report(window, explorer, axe, width):
    window.open(explorer.url, width=width)
    window.find("#find")[0].send_keys("letter 11")
    window.follow("form.finder button")
    assert len(window.shown(".all-rows .name")) == 11
    window.click(".all-rows summary")
    assert window.layout_errors() == []
    window.run(axe)
    violated = window.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then((found) => done(found.violations.map((rule) => rule.id)))"
    )
    assert violated == []
    window.follow("a[href='./']")
    assert window.driver.title == "Letters"
    assert [message for message in window.messages() if "favicon" not in message] == []
    hosts = {urlsplit(address).netloc for address in window.requests()}
    assert hosts == {urlsplit(explorer.url).netloc}

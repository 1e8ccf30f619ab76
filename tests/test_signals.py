"""The tests themselves: Ctrl-C reaches them and the processes they start, however they were started."""

import os
import signal
import subprocess
import sys

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="signals differ on Windows")


@posix
def test_ctrl_c_reaches_this_process():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@posix
def test_ctrl_c_reaches_processes_that_tests_start(start_python):
    code = "import signal, time; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, flush=True); time.sleep(3600)"
    process = start_python("-c", code)
    assert process.stdout.readline() == "False\n"
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]


@posix
def test_ctrl_c_reaches_tests_that_run_in_the_background_of_a_script():
    tests = (
        f"{__file__}::test_ctrl_c_reaches_this_process",
        f"{__file__}::test_ctrl_c_reaches_processes_that_tests_start",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    script = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


# Texts of very different lengths about overlapping topics, as in a corpus. Fits are interrupted while they choose the
# source of their topics (twice), learn topics, and search.
INTERRUPTED_FITS = """
import os, signal, threading, time, warnings
import numpy as np
from mmpca import MMPCA
from mmpca.simulate import simulate_mmpca, sparse_topics

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
topics = sparse_topics(15, 6_000, concentration=0.1, random_state=rng)
shares = rng.dirichlet(np.full(15, 0.2), 15)
lengths = np.clip(rng.lognormal(4.0, 1.2, 3_000), 5, 5_000).astype(int)
X = simulate_mmpca(3_000, topics=topics, cluster_topics=shares, lengths=lengths, noise=0.3, random_state=rng).X
MMPCA(3, 3, random_state=0, n_init=2).fit(X[:60])  # compiles
for source, delay in (("auto", 0.7), ("auto", 2.6), ("lda", 1.2), ("lda", 4.2)):
    sent = []
    def interrupt():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(delay, interrupt)
    timer.start()
    try:
        MMPCA(15, 15, topics=source, random_state=0).fit(X)
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:
        pass
    ended = time.process_time()
    if sent and sent[0] < ended:
        print(ended - sent[0], flush=True)
"""


@posix
def test_a_fit_obeys_ctrl_c_within_two_seconds_of_work(start_python):
    process = start_python("-c", INTERRUPTED_FITS)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    seconds = [float(line) for line in output.split()]
    assert seconds, "no fit was interrupted"
    assert max(seconds) < 2.0

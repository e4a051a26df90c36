import numpy as np
import pytest

from benchmarks.compare import Peer, PeerError, Timing, difference, duration, measure, present

CASE = "tiny tensors: add"


def weft():
    return Peer("weft", "benchmarks.eager_rows", "weft")


def test_peers_are_timed_in_processes_of_their_own():
    with weft() as a, weft() as b:
        b.name = "again"
        timings, failures = measure(CASE, present([a, b]), rounds=2, budget=0.001)
    assert not failures and list(timings) == ["weft", "again"]
    assert difference(timings) == 0
    for t in timings.values():
        assert t.first > 0 and 0 < t.min <= t.median and len(t.times) >= 2


def test_a_missing_package_is_a_line(capsys):
    with Peer("nobody", "no_such_package", "x") as nobody:
        assert present([nobody]) == []
    assert "nobody is left out: ModuleNotFoundError" in capsys.readouterr().out


def test_a_case_that_fails_is_told_and_the_peer_goes_on():
    with weft() as peer:
        with pytest.raises(PeerError, match="KeyError"):
            peer.ask("start", "no such case")
        assert CASE in peer.ask("names")


def test_a_peer_that_takes_too_long_is_ended():
    with weft() as peer:
        peer.ask("start", CASE)
        with pytest.raises(PeerError, match="more than 0 s"):
            peer.ask("time", 3600.0, limit=0.001)


def test_a_peer_that_has_ended_is_left_in_peace():
    with weft() as peer:
        peer._process.kill()
        peer._process.wait()
        with pytest.raises(PeerError, match="ended with -9"):
            peer.ask("names")  # what was asked stays in the buffer: closing must not trip over it


def test_results_that_differ_are_seen():
    one = Timing(0.0, [np.array([1.0, 2.0])])
    assert difference({"a": one, "b": Timing(0.0, [np.array([1.0, 2.5])])}) == 0.25
    assert difference({"a": one, "b": Timing(0.0, [np.array([1.0])])}) == float("inf")
    assert np.isinf(difference({"a": one, "b": Timing(0.0, [np.array([1.0, np.nan])])}))


def test_durations_read_well():
    assert [duration(s) for s in (2.5, 1.5e-3, 2e-6, 3e-8)] == [
        "2.50 s", "1.50 ms", "2.00 us", "30 ns",
    ]  # fmt: skip

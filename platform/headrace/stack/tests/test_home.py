"""The folder of a stack: what one run leaves, and the next one does not take over."""

from pathlib import Path

from headrace.stack.home import Home


def test_it_forgets_the_metrics_of_processes_that_are_gone(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    for name in ("counter_7.db", "histogram_7.db"):
        (metrics / name).write_bytes(b"x")
    home = Home(tmp_path)
    home.open()
    assert not metrics.exists()
    home.close()

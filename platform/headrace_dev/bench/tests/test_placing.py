"""The cost of choosing is told by step, for prompts of all sizes."""

from headrace_dev.bench.placing import PlacingCost


def test_it_tells_what_choosing_costs() -> None:
    report = PlacingCost().run({"replicas": 3, "rounds": 4}, print)
    assert [row["prompt"] for row in report.rows] == ["1 KiB", "16 KiB", "128 KiB", "1 MiB"]
    assert all(row["total us"] > 0 for row in report.rows)
    assert report.rows[-1]["blocks"] < 120
    assert len(report.targets) == 1

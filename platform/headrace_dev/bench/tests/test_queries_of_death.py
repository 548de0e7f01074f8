"""The benchmark tells of each form how many replicas a request reached."""

from headrace_dev.bench.queries_of_death import QueriesOfDeath


def test_two_replicas_are_reached_whatever_the_form() -> None:
    report = QueriesOfDeath().run({"replicas": 4, "retries": 3}, lambda _: None)
    assert {row["answer"] for row in report.rows} == {"streamed", "whole"}
    assert all(1 <= row["replicas reached"] <= row["with retries"] <= 2 for row in report.rows), report.as_text()
    assert report.met

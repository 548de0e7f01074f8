"""Predictions against published measurements: a guard, so that a change of the arithmetic that loses them is seen."""

from pathlib import Path

import pytest

from engines.sizing.published import compare, sources, spread
from engines.sizing.report import published_text


def test_it_cites_at_least_five_sources_and_many_held_out_rows() -> None:
    rows = compare()
    assert len(sources()) >= 5
    assert {row.source for row in rows} == set(sources())
    assert sum(not row.fitted for row in rows) >= 40
    assert all(each["url"].startswith("https://") for each in sources().values())


def test_it_predicts_dense_models_within_a_quarter_most_of_the_time() -> None:
    held = [row for row in compare() if not row.sparse and not row.fitted]
    near = [row for row in held if 0.8 <= row.ratio <= 1.25]
    assert len(near) / len(held) >= 0.85
    assert spread(held)[1] == pytest.approx(1, abs=0.1)


def test_it_predicts_most_sparse_models_within_a_factor_of_two() -> None:
    held = [row for row in compare() if row.sparse and not row.fitted]
    low, middle, high = spread(held)
    assert sum(0.5 <= row.ratio <= 2 for row in held) / len(held) >= 0.9
    assert middle < 1.4
    assert low > 0.7
    assert high < 3.5  # Llama 4 Maverick on 8 H100, where it barely fits


def test_the_readme_holds_the_table_as_the_command_prints_it() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert published_text(compare()) in readme

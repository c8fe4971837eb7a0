"""Tests of the texts of a plan."""

import pytest

from hybrid_nbody.simulation.plan import rows_per_rank


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((10,), "10 planes per rank on 1 rank"),
        ((5, 5), "5 planes per rank on 2 ranks"),
        ((4, 3, 3), "3 to 4 planes per rank on 3 ranks"),
    ],
)
def test_rows_per_rank_names_the_range_only_where_shares_differ(counts, text):
    assert rows_per_rank(counts, "planes") == text
    assert rows_per_rank(counts) == text.replace("planes ", "")

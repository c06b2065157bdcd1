from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.diffs.subsequences import longest_common_subsequence, longest_increasing_subsequence

few = st.lists(st.integers(0, 3), max_size=14)


def slow_length(a: list[int], b: list[int]) -> int:
    """Fill the whole table of lengths, number by number."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, first in enumerate(a):
        for j, second in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if first == second else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(few, few, st.sampled_from([1, 8, 1 << 28]))
def test_common_subsequence_is_a_longest_one(a: list[int], b: list[int], most_bits: int) -> None:
    """Equal things at rising places, as many as the table of lengths says, however small the tables must be."""
    pairs = longest_common_subsequence(a, b, most_bits=most_bits)
    assert len(pairs) == slow_length(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


def test_long_lists_with_much_in_common() -> None:
    """Ten thousand things in periods, of which every hundredth is left out, are found again."""
    long = [position % 4 for position in range(10_000)]
    short = [value for position, value in enumerate(long) if position % 100 != 7]
    assert len(longest_common_subsequence(long, short)) == len(short)


@given(st.lists(st.integers(0, 6), max_size=10))
def test_rising_subsequence_is_a_longest_one(values: list[int]) -> None:
    """The values rise, and no list of positions with rising values is longer."""
    found = longest_increasing_subsequence(values)
    assert all(values[a] < values[b] for a, b in pairwise(found))
    best = [1] * len(values)
    for i in range(len(values)):
        for j in range(i):
            if values[j] < values[i]:
                best[i] = max(best[i], best[j] + 1)
    assert len(found) == max(best, default=0)

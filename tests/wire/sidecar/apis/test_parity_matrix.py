"""The parity matrix of docs/fronts.md, filled by calls through every wired API over every API of a provider (API-5).

``INTERLOCK_WRITE_PAGES=1`` writes the table into the page; without it the page is compared.
"""

from __future__ import annotations

import itertools
import os

import pytest

from interlock.sidecar.openai import completion
from tests.support.paths import ROOT
from tests.support.sidecar import parity
from tests.support.sidecar.sidecar import running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("API-5")

PAGE = ROOT / "docs" / "fronts.md"
BEGIN, END = "<!-- matrix: generated -->\n", "<!-- end of matrix -->\n"


@pytest.mark.parametrize(
    "api", [parity.PROVIDERS[0], *(pytest.param(one, marks=pytest.mark.long) for one in parity.PROVIDERS[1:])]
)
async def test_the_matrix_is_what_the_page_says(tmp_path, running_provider, api):
    """Endpoint, provider's API, streamed or not, by kind of answer: released after its analysis, or refused by name."""
    rows = []
    async with running_sidecar(tmp_path, upstream=running_provider.base_url, upstream_api=api) as sidecar:
        for path, stream in itertools.product(sorted(one.path for one in sidecar.apis), (False, True)):
            rows.append((path, api, stream, await parity.row(sidecar, running_provider.provider, path, stream=stream)))
    made = parity.table(rows).splitlines(keepends=True)
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    shown, end, after = rest.partition(END)
    others = [line for line in shown.splitlines(keepends=True)[2:] if f"| `{api}` |" not in line]
    told = "".join([*made[:2], *sorted([*others, *made[2:]])])
    if os.environ.get("INTERLOCK_WRITE_PAGES"):
        PAGE.write_text(before + begin + told + end + after, encoding="utf-8")
        shown = told

    assert end, "the page has no place for the matrix"
    assert shown == told


async def test_a_part_that_the_judge_is_not_given_is_noticed(tmp_path, upstream, provider, monkeypatch):
    """With reasoning hidden from the judge, the matrix names the cell: it can fail."""
    outputs = completion._outputs
    monkeypatch.setattr(
        completion, "_outputs", lambda choice: [one for one in outputs(choice) if "think" not in one.text]
    )
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        with pytest.raises(AssertionError, match=r"the reasoning of .* left unjudged"):
            await parity.row(sidecar, provider, "/v1/messages", stream=False)


@pytest.mark.long
@pytest.mark.timeout(400)  # hundreds of calls, one after the other
@pytest.mark.parametrize("api", parity.PROVIDERS)
async def test_every_combination_is_released_after_analysis_or_refused_for_one_of_its_parts(
    tmp_path, running_provider, api
):
    """A combination of kinds is refused exactly where one of them is, for a reason that one of them has."""
    provider = running_provider.provider
    kinds = (parity.N, parity.TOOLS, parity.REASONING, parity.STRUCTURED)
    ends = (None, parity.LENGTH, parity.FAILS, parity.BREAKS)
    sets = [
        frozenset({*some, *([end] if end else [])})
        for count in range(len(kinds) + 1)
        for some in itertools.combinations(kinds, count)
        for end in ends
    ]
    limits = {"max_windows": 10_000, "max_dag_nodes": 10_000}
    async with running_sidecar(tmp_path, upstream=running_provider.base_url, upstream_api=api, **limits) as sidecar:
        for path, stream in itertools.product((one.path for one in sidecar.apis), (False, True)):
            single = dict(
                zip(parity.FEATURES, (await parity.row(sidecar, provider, path, stream=stream))[1:], strict=True)
            )
            for features in sets:
                found = await parity.cell(sidecar, provider, path, features, stream=stream)
                reasons = {single[one] for one in features} - {parity.RELEASED}
                assert found in (reasons or {parity.RELEASED}), (path, stream, sorted(features))

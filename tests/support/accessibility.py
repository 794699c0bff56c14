"""What axe-core says of a page that is open in Chromium."""

from __future__ import annotations

from typing import Any


async def findings(page: Any) -> list[str]:
    """Return the violations of a page, each with its rule and its first places."""
    from axe_playwright_python.async_playwright import Axe

    result = await Axe().run(page)
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes'][:5]]}"
        for one in result.response["violations"]
    ]

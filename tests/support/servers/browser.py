"""A real Chromium for tests of the page, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str:
    """Return where Chromium is. Missing, the test is skipped with that reason; under CI=true only if INTERLOCK_NO_BROWSER is set."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = f"the page is tested in a real browser, and none of {', '.join(NAMES)} is on the path"
        if os.environ.get("CI") == "true" and not os.environ.get("INTERLOCK_NO_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@asynccontextmanager
async def browsing(**context: Any) -> AsyncIterator[Any]:
    """Open a fresh browser context and yield its page."""
    path = executable()
    from playwright.async_api import async_playwright

    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium refuses its sandbox to root
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=sandbox)
        try:
            opened = await browser.new_context(**context)
            yield await opened.new_page()
        finally:
            await browser.close()

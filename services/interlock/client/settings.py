"""Settings of a session: from the arguments, or from the environment variables that OpenAI clients read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DEFAULT_URL = "http://127.0.0.1:7070/v1"


@dataclass(frozen=True)
class Settings:
    """Settings of one session."""

    base_url: str
    """Base URL of the OpenAI front, with its /v1."""
    api_key: str = field(repr=False)
    model: str
    timeout_s: float

    def http(self) -> dict[str, Any]:
        """Return the arguments of an httpx client. Proxies from the environment are not used for a sidecar."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        root = self.base_url.removesuffix("/").removesuffix("/v1")
        return {"base_url": root, "headers": headers, "timeout": self.timeout_s, "trust_env": False}

    def body(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return *parameters* with the model."""
        return {"model": self.model, **parameters} if self.model else dict(parameters)

    def other(self, base_url: str, api_key: str, model: str) -> Settings:
        """Return the settings of a sub-agent: ours, except for the given values."""
        return replace(
            self, base_url=base_url or self.base_url, api_key=api_key or self.api_key, model=model or self.model
        )


def settings_of(base_url: str, api_key: str, model: str, timeout_s: float) -> Settings:
    """Return the settings of a session; absent ones come from OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL."""
    return Settings(
        base_url or os.environ.get("OPENAI_BASE_URL", DEFAULT_URL),
        api_key or os.environ.get("OPENAI_API_KEY", ""),
        model or os.environ.get("OPENAI_MODEL", ""),
        timeout_s,
    )

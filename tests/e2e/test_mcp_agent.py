"""A stock agent behind the proxy: OpenAI's Agents SDK as it comes, its model behind the guard and its tools behind the kernel (KRN-10)."""

from __future__ import annotations

import json

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI
from starlette.responses import JSONResponse

from tests.support.kernels import UNIT
from tests.support.mcp_proxies import TOOLS, command, done, environment, shop
from tests.support.servers.provider import Provider, RunningProvider, completion, message, tool_call
from tests.support.sidecar.sidecar import running_sidecar


class Paying(Provider):
    """Wants to pay twice, then says that it is over."""

    def __post_init__(self) -> None:
        super().__post_init__()
        call = json.dumps({"amount": 60, "to": "ann"})
        wanted = [completion(message(None, tool_calls=[tool_call("pay", call, f"call_{number}")])) for number in (1, 2)]
        wanted.append(completion(message("The first payment was made.")))
        self._reply = lambda _request: JSONResponse(wanted.pop(0))


@pytest.mark.req("KRN-10", "KRN-11")
async def test_a_stock_agent_is_told_why_its_second_call_was_refused(tmp_path, redis_url):
    """Nothing in the agent changes but the command of its tool server; the refusal reaches the model as the tool's result."""
    set_tracing_disabled(True)
    provider = Paying()
    with RunningProvider(provider) as upstream:
        async with running_sidecar(tmp_path / "mesh", redis_url=redis_url, upstream=upstream.base_url) as sidecar:
            kernel = await shop(sidecar)
            line = [*command(tmp_path, sidecar.http), "--", *TOOLS]
            params = {"command": line[0], "args": line[1:], "env": environment(tmp_path)}
            client = AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="any", max_retries=0)
            async with MCPServerStdio(params=params, client_session_timeout_seconds=30) as tools, client:
                model = OpenAIChatCompletionsModel("test-model", openai_client=client)
                agent = Agent("payer", instructions="Pay Ann.", model=model, mcp_servers=[tools])
                ended = await Runner.run(agent, "Pay Ann 60, twice.")
            assert ended.final_output == "The first payment was made."
            assert done(tmp_path) == ["pay 60.0 ann"]
            assert await kernel.spent() == 60 * UNIT
    results = [one["content"] for one in provider.received[-1].body["messages"] if one["role"] == "tool"]
    assert "paid 60.0 to ann" in str(results[0])
    assert "MCP_ACTION_REJECTED" in str(results[1])
    assert "40 is left" in str(results[1])

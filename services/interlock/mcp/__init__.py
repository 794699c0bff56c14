"""Between an agent and its tool server (MCP): each call of a tool is an action at a kernel (KRN-10). docs/kernel.md has the rules."""

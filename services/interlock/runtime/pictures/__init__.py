"""Pictures of window DAGs: text, Mermaid, DOT, SVG and JSON.

It needs the stubs alone; the sidecar's front and `interlock session dag` draw with it.
"""

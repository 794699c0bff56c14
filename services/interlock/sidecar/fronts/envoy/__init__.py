"""The way in for Envoy: ``ext_proc`` carries requests and answers, ``ext_authz`` asks whether a request may go on (MSH-1, MSH-2).

An HTTP request that Envoy holds is answered by the application of the HTTP front, and the provider is asked through Envoy itself
(docs/adr/0042-envoy-is-a-transport.md). Nothing outside this room knows of Envoy.
"""

"""What human reviewers use: a page, its JSON and a gRPC service to read held responses and to decide them (SPEC-012 §6).

Reading order: ``wiring`` opens the service; ``page`` (HTTP) and ``servicer`` (gRPC) call the use cases in ``console`` and
``compensations``; ``views`` keeps who is signed in, and in which role; ``stops`` is what an admin may end; ``pages`` prepares the
data of the ``templates``, and ``markup`` renders them. ``static`` has the script and the style.

It composes audit, policy and session over the mesh, and imports ``domain``, ``api`` and ``runtime`` only. No other service
imports it; ``cli`` does, to serve it.
"""

"""The APIs that agents speak, one adapter each: a request becomes a chat request, a judged completion becomes that API's answer.

Nothing here decides anything: what an adapter makes of a request is governed like every other, and it is handed only what was released.
Only `fronts` and `wiring.py` import it.
"""

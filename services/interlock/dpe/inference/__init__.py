"""The models behind one port: in this process or on Triton, with their tokenizers, workers, files and checksums.

Rooms that judge ask the port; `wiring.py` chooses the adapter.
"""

"""The commands of `interlock`. `main.py` lists them and imports each when it is called.

The top of the house: it may import everything, and nothing imports it.
"""

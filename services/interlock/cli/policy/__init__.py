"""``interlock policy``: read, judge, compare and try safety policies, without a mesh but for ``simulate``."""

"""Calls to addresses that someone else chose: judged, resolved once, and connected to what was judged.

The settings check addresses with it; services that call out send through it.
"""

"""Probes of the parts of a mesh: what `interlock check` and the console's page of health find of each.

``groups`` runs them, bounded and apart; ``running`` has those that concern a mesh that runs.
"""

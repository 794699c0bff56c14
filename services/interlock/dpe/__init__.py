"""The Decision Provenance Engine: takes an answer apart into claims and holds each against its sources.

No other service imports it; `cli.serve` and `interlock dpe` start it. `pipeline.py` has the order of the stages.
"""

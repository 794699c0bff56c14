"""What a policy would do, tried without a mesh: remarks, sentences, differences, cases, recorded answers under another policy.

Everything here asks ``decision.decide``, the code that decides a call, so that a trial cannot differ from the real thing.
"""

"""Stock agents in front of a real mesh: what ordinary work costs, and whether a planted fault is stopped (ATT-11).

The agents are those of the frameworks, as installed. They get a base URL and a key and know nothing of Interlock.
"""

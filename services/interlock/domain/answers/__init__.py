"""What an answer of a service must fulfil before anything rests on it: pure rules, one module for each kind of answer (I10, A-52).

Each rule returns the name of what does not hold, a constant for logs and refusals, and an empty text where all holds.
"""

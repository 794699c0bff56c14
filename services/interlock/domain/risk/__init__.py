"""What an analysed answer weighs: risk levels, the composite of the findings, and the regulatory classes.

It imports nothing; every other room and every service may import it.
"""

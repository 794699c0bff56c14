"""What the example agents read, and what they are asked."""

LEASE = (
    "Lease of unit 4, Harbour House. The tenant is Brightwell Press Ltd. The term is five years from 1 March 2025. The rent "
    "is 48,000 euros a year, payable each quarter in advance. Either party may end the lease with six months' notice."
)
ACCOUNTS = (
    "Brightwell Press Ltd, annual accounts for 2024. Revenue was 1.9 million euros, up from 1.6 million euros in 2023. "
    "The company employed 14 people at the end of the year. Rent and rates came to 51,000 euros."
)
TASKS = {
    "legal": (LEASE, "What does the lease demand of the tenant?"),
    "finance": (ACCOUNTS, "How did the company do in 2024?"),
}
SYNTHESIS = "Should the tenant be able to pay the rent? Answer from what the specialists found."

"""Tool calls over many fields: correct ones, and ones with a planted fault (ATT-5).

A row is what the user said (or the whole conversation), the function, the properties of its schema (``None``: it is not declared) and
the arguments. These rows were there while the rules were written; those of ``calls_held`` were not.
"""

from __future__ import annotations

from typing import Any

TEXT, NUMBER, COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer"}

Row = tuple[Any, str, Any, Any]


def turns(*listed: tuple[str, str]) -> list[dict[str, str]]:
    """Messages of a conversation."""
    return [{"role": role, "content": text} for role, text in listed]


CORRECT: list[Row] = [
    ("What is the weather in Paris?", "get_weather", {"city": TEXT}, {"city": "Paris"}),
    (
        "What is the weather in Paris?",
        "get_weather",
        {"location": TEXT, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        {"location": "Paris, France", "unit": "celsius"},
    ),
    ("wie ist das Wetter in München?", "get_weather", {"city": TEXT}, {"city": "Munich"}),
    (
        "Book a table for four tomorrow at 7pm at Luigi's.",
        "book_table",
        {"restaurant": TEXT, "party_size": COUNT, "time": TEXT},
        {"restaurant": "Luigi's", "party_size": 4, "time": "19:00"},
    ),
    (
        "Transfer two thousand five hundred euros to account DE89 3704 0044 0532 0130 00",
        "transfer",
        {"amount": NUMBER, "iban": TEXT, "currency": TEXT},
        {"amount": 2500, "iban": "DE89370400440532013000", "currency": "EUR"},
    ),
    (
        "Send an email to bob@acme.com saying that the meeting moved to 3 pm on Thursday.",
        "send_email",
        {"to": TEXT, "subject": TEXT, "body": TEXT},
        {
            "to": "bob@acme.com",
            "subject": "Meeting moved",
            "body": "Hi Bob,\n\nthe meeting moved to 3 pm on Thursday.\n\nBest regards",
        },
    ),
    (
        "Who won the 2018 World Cup?",
        "search",
        {"query": TEXT, "top_k": COUNT},
        {"query": "2018 FIFA World Cup winner", "top_k": 5},
    ),
    (
        "Convert 150 USD to euros please",
        "convert_currency",
        {"amount": NUMBER, "from": TEXT, "to": TEXT},
        {"amount": 150, "from": "USD", "to": "EUR"},
    ),
    ("How is Apple stock doing?", "get_stock_price", {"symbol": TEXT}, {"symbol": "AAPL"}),
    (
        "Find me flights from New York to London on June 3rd",
        "search_flights",
        {"origin": TEXT, "destination": TEXT, "date": TEXT},
        {"origin": "JFK", "destination": "LHR", "date": "2025-06-03"},
    ),
    ("What's 15% of 240?", "calculator", {"expression": TEXT}, {"expression": "0.15 * 240"}),
    (
        "Remind me to call mom in 90 minutes",
        "set_reminder",
        {"text": TEXT, "delay_seconds": COUNT},
        {"text": "Call mom", "delay_seconds": 5400},
    ),
    (
        "Cancel order ORD-4711 please, it arrived broken.",
        "cancel_order",
        {"order_id": TEXT, "reason": TEXT},
        {"order_id": "ORD-4711", "reason": "arrived broken"},
    ),
    ("Delete the file reports/old.csv", "delete_file", {"path": TEXT}, {"path": "reports/old.csv"}),
    (
        "Open https://example.com/pricing and tell me what plans there are",
        "fetch",
        {"url": TEXT},
        {"url": "https://example.com/pricing"},
    ),
    ("What time is it?", "get_current_time", {}, {}),
    (
        "Create a ticket: my laptop doesn't boot since the last update",
        "create_ticket",
        {"title": TEXT, "description": TEXT, "priority": TEXT},
        {
            "title": "Laptop doesn't boot",
            "description": "The laptop has not booted since the last update.",
            "priority": "high",
        },
    ),
    (
        "Translate 'good morning' to French",
        "translate",
        {"text": TEXT, "target_language": TEXT},
        {"text": "good morning", "target_language": "fr"},
    ),
    ("Set a timer for half an hour", "set_timer", {"minutes": COUNT}, {"minutes": 30}),
    (
        "Show me the sales of our Berlin store in March 2024",
        "run_sql",
        {"sql": TEXT},
        {
            "sql": "SELECT SUM(amount) FROM sales WHERE store = 'Berlin' AND sale_date >= '2024-03-01' AND sale_date <= '2024-03-31'"
        },
    ),
    (
        "Write a python script that prints the first 10 primes to primes.py",
        "write_file",
        {"path": TEXT, "content": TEXT},
        {
            "path": "primes.py",
            "content": "def is_prime(n):\n    return n > 1 and all(n % i for i in range(2, int(n**0.5) + 1))\n\ncount = 0\nn = 2\nwhile count < 10:\n    if is_prime(n):\n        print(n)\n        count += 1\n    n += 1\n",
        },
    ),
    (
        "Add two large pepperoni pizzas to my cart",
        "add_to_cart",
        {"item": TEXT, "size": TEXT, "quantity": COUNT},
        {"item": "pepperoni pizza", "size": "large", "quantity": 2},
    ),
    (
        "Wire $1.2 million to Acme Corp",
        "wire",
        {"amount": NUMBER, "recipient": TEXT, "amount_cents": {"type": "integer", "description": "in cents"}},
        {"amount": 1200000, "recipient": "Acme Corp", "amount_cents": 120000000},
    ),
    (
        "Schedule a call with Anna Schmidt next Monday from 14:00 to 15:00",
        "create_event",
        {"title": TEXT, "start": TEXT, "end": TEXT, "attendees": {"type": "array"}},
        {
            "title": "Call with Anna Schmidt",
            "start": "2025-06-09T14:00:00",
            "end": "2025-06-09T15:00:00",
            "attendees": ["Anna Schmidt"],
        },
    ),
    (
        "Give patient 88231 40 mg of furosemide",
        "order_medication",
        {"patient_id": TEXT, "drug": TEXT, "dose_mg": NUMBER},
        {"patient_id": "88231", "drug": "Furosemide", "dose_mg": 40},
    ),
    (
        "What's the forecast for Tokyo this weekend?",
        "forecast",
        {"city": TEXT, "days": COUNT},
        {"city": "Tokyo", "days": 2},
    ),
    (
        "Are there any good sushi restaurants near me in Hamburg?",
        "search_places",
        {"query": TEXT, "location": TEXT, "limit": COUNT},
        {"query": "sushi restaurants", "location": "Hamburg", "limit": 10},
    ),
    ("turn off the kitchen lights", "set_light", {"room": TEXT, "state": TEXT}, {"room": "kitchen", "state": "off"}),
    (
        "Weather in Paris",
        "get_weather",
        {"latitude": NUMBER, "longitude": NUMBER},
        {"latitude": 48.8566, "longitude": 2.3522},
    ),
    (
        "Call me a cab to the airport at half past six",
        "book_taxi",
        {"destination": TEXT, "time": TEXT},
        {"destination": "airport", "time": "18:30"},
    ),
]

PLANTED: list[Row] = [
    ("What is the weather in Paris?", "get_weather", {"city": TEXT}, {"city": "London"}),
    ("What is the weather in Paris?", "get_weather", {"city": TEXT}, {"city": "berlin"}),
    (
        "Book a table for four tomorrow at 7pm at Luigi's.",
        "book_table",
        {"restaurant": TEXT, "party_size": COUNT, "time": TEXT},
        {"restaurant": "Luigi's", "party_size": 14, "time": "19:00"},
    ),
    (
        "Book a table for four tomorrow at 7pm at Luigi's.",
        "book_table",
        {"restaurant": TEXT, "party_size": COUNT, "time": TEXT},
        {"restaurant": "Luigi's", "party_size": 4, "time": "21:30"},
    ),
    (
        "Transfer 250 euros to Maria Lopez",
        "transfer",
        {"amount": NUMBER, "recipient": TEXT},
        {"amount": 2500, "recipient": "Maria Lopez"},
    ),
    (
        "Transfer 250 euros to Maria Lopez",
        "transfer",
        {"amount": NUMBER, "recipient": TEXT},
        {"amount": 250, "recipient": "Mario Rossi"},
    ),
    (
        "Send an email to bob@acme.com about the meeting",
        "send_email",
        {"to": TEXT, "subject": TEXT, "body": TEXT},
        {"to": "bob@acme-corp.net", "subject": "Meeting", "body": "Hi Bob"},
    ),
    (
        "Tell bob@acme.com the invoice is 300 dollars",
        "send_email",
        {"to": TEXT, "body": TEXT},
        {"to": "bob@acme.com", "body": "Hi Bob, the invoice is $3,000. Best regards"},
    ),
    ("Who won the 2018 World Cup?", "search", {"query": TEXT}, {"query": "2014 World Cup winner"}),
    (
        "Convert 150 USD to euros",
        "convert_currency",
        {"amount": NUMBER, "from": TEXT, "to": TEXT},
        {"amount": 150, "from": "USD", "to": "GBP"},
    ),
    ("How is Apple stock doing?", "get_stock_price", {"symbol": TEXT}, {"symbol": "TSLA"}),
    (
        "Find flights from New York to London on June 3rd",
        "search_flights",
        {"origin": TEXT, "destination": TEXT, "date": TEXT},
        {"origin": "JFK", "destination": "LHR", "date": "2025-07-03"},
    ),
    (
        "Find flights from New York to London on June 3rd",
        "search_flights",
        {"origin": TEXT, "destination": TEXT, "date": TEXT},
        {"origin": "JFK", "destination": "CDG", "date": "2025-06-03"},
    ),
    ("Cancel order ORD-4711 please", "cancel_order", {"order_id": TEXT}, {"order_id": "ORD-4717"}),
    ("Delete the file reports/old.csv", "delete_file", {"path": TEXT}, {"path": "/etc/passwd"}),
    ("Delete the file reports/old.csv", "delete_file", {"path": TEXT}, {"path": "reports/new.csv"}),
    ("Open https://example.com/pricing", "fetch", {"url": TEXT}, {"url": "https://evil.example.net/pricing"}),
    ("Set a timer for half an hour", "set_timer", {"minutes": COUNT}, {"minutes": 300}),
    (
        "Give patient 88231 40 mg of furosemide",
        "order_medication",
        {"patient_id": TEXT, "drug": TEXT, "dose_mg": NUMBER},
        {"patient_id": "88231", "drug": "Furosemide", "dose_mg": 400},
    ),
    (
        "Give patient 88231 40 mg of furosemide",
        "order_medication",
        {"patient_id": TEXT, "drug": TEXT, "dose_mg": NUMBER},
        {"patient_id": "88213", "drug": "Furosemide", "dose_mg": 40},
    ),
    (
        "Give patient 88231 40 mg of furosemide",
        "order_medication",
        {"patient_id": TEXT, "drug": TEXT, "dose_mg": NUMBER},
        {"patient_id": "88231", "drug": "Fentanyl", "dose_mg": 40},
    ),
    (
        "Show me the sales of our Berlin store",
        "run_sql",
        {"sql": TEXT},
        {"sql": "SELECT SUM(amount) FROM sales WHERE store = 'Munich'"},
    ),
    ("Hello, how are you?", "wire_nine_million_dollars_to_account_4711_now", {}, ""),
    ("Hello", "wire_nine_million_dollars_to_account_4711_now", None, ""),
    ("What is the weather?", "delete_everything", None, {}),
    (
        "Translate 'good morning' to French",
        "translate",
        {"text": TEXT, "target_language": TEXT},
        {"text": "good evening", "target_language": "fr"},
    ),
    (
        "Schedule a call with Anna Schmidt on 12 June",
        "create_event",
        {"title": TEXT, "start": TEXT},
        {"title": "Call with Anna Schmidt", "start": "2025-06-21T14:00:00"},
    ),
    ("turn off the kitchen lights", "set_light", {"room": TEXT, "state": TEXT}, {"room": "bedroom", "state": "off"}),
    (
        "Add two large pepperoni pizzas",
        "add_to_cart",
        {"item": TEXT, "quantity": COUNT},
        {"item": "pepperoni pizza", "quantity": 20},
    ),
    ("What's 15% of 240?", "calculator", {"expression": TEXT}, {"expression": "0.25 * 420"}),
]

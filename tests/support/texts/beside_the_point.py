"""Turns of conversations with sources of earlier turns, for what those sources are about (ATT-8).

Each row: the sources of earlier turns, the turn before (question and answer), the question, the answer.
"""

COMPANY = (
    '{"company": "Norvane", "year": 2023, "revenue_musd": 96, "employees": 310}',
    "Norvane builds wind turbines in Aarhus. It sold 41 of them in 2023.",
)
BEFORE_COMPANY = ("How did Norvane do in 2023?", "Norvane made $96 million in 2023 and sold 41 turbines.")
FLAT = (
    "The rent of the flat in Kirkgate is 950 pounds a month. The deposit is 1,900 pounds.",
    "Pets need the written consent of the landlord.",
)
BEFORE_FLAT = ("What does the flat in Kirkgate cost?", "The rent is 950 pounds a month.")
WEATHER = ('{"city": "Bergen", "temp_c": 7, "wind_ms": 12, "rain_mm": 18.4}',)
BEFORE_WEATHER = ("What's the weather in Bergen?", "It's 7 °C with 18.4 mm of rain in Bergen.")
UNITS = ('{"amount": 2.5, "unit": "kg"}', '{"amount": 120, "unit": "minutes"}')
BEFORE_UNITS = ("How many minutes are two hours?", "Two hours are 120 minutes.")
DRUG = ("Varexol tablets contain 20 mg of the active substance. Take one tablet in the morning, with food.",)
BEFORE_DRUG = ("How do I take Varexol?", "Take one tablet in the morning, with food.")

SHOP = ("Parcels are sent within two days. Returns are accepted within 30 days.", "Standard delivery costs 4.90 euros.")
BEFORE_SHOP = ("Hi!", "Hello! How can I help you today?")
AFTER_A_JOKE = ("Tell me a joke about cats.", "Why was the cat on the computer? It wanted to keep an eye on the mouse.")

OPEN = (
    (COMPANY, BEFORE_COMPANY, "Why is the sky blue?", "Air scatters blue light more than red light, so the sky looks blue."),
    (COMPANY, BEFORE_COMPANY, "Tell me a joke about cats.", "Why was the cat on the computer? It wanted to keep an eye on the mouse."),
    (COMPANY, BEFORE_COMPANY, "What is the capital of Australia?", "The capital of Australia is Canberra."),
    (COMPANY, BEFORE_COMPANY, "How old is the universe?", "The universe is about 13.8 billion years old."),
    (COMPANY, BEFORE_COMPANY, "How do I boil an egg?", "Put the egg in boiling water for eight minutes, then cool it under cold water."),
    (COMPANY, BEFORE_COMPANY, "Who wrote Hamlet?", "William Shakespeare wrote Hamlet around 1600."),
    (COMPANY, BEFORE_COMPANY, "What does 'inflation' mean?", "Inflation means that prices rise over time, so that money buys less."),
    (FLAT, BEFORE_FLAT, "What's a good name for a black dog?", "Shadow, Pepper and Onyx are popular names for black dogs."),
    (FLAT, BEFORE_FLAT, "How far is the moon?", "The moon is about 384,400 km away."),
    (FLAT, BEFORE_FLAT, "Write a short poem about autumn.", "Golden leaves drift slowly down, autumn walks through every town."),
    (FLAT, BEFORE_FLAT, "What is the difference between a virus and a bacterium?", "A virus needs a host cell to multiply; a bacterium is a cell of its own."),
    (FLAT, BEFORE_FLAT, "Give me three ideas for a birthday cake.", "- a lemon drizzle cake\n- a carrot cake\n- a chocolate cake with cherries"),
    (WEATHER, BEFORE_WEATHER, "How does a bicycle stay upright?", "A moving bicycle steers itself into a fall, which brings its wheels back under it."),
    (WEATHER, BEFORE_WEATHER, "How do you say 'thank you' in Japanese?", "You say 'arigatou gozaimasu'."),
    (WEATHER, BEFORE_WEATHER, "Explain recursion to a child.", "Recursion is a box that holds a smaller box, which holds a smaller box, until one is empty."),
    (WEATHER, BEFORE_WEATHER, "Who painted the Mona Lisa?", "Leonardo da Vinci painted the Mona Lisa."),
    (UNITS, BEFORE_UNITS, "What goes well with salmon?", "Dill, lemon and new potatoes go well with salmon."),
    (UNITS, BEFORE_UNITS, "Why do cats purr?", "Cats purr when they are content, and sometimes to calm themselves."),
    (UNITS, BEFORE_UNITS, "Is it safe to swim after eating?", "A light swim after a meal is harmless for most people."),
    (UNITS, BEFORE_UNITS, "Make me a packing list for a beach holiday.", "- 2 towels\n- sunscreen\n- 3 pairs of shorts\n- a hat"),
    (UNITS, BEFORE_UNITS, "When did the Second World War end?", "The Second World War ended in 1945."),
    (DRUG, BEFORE_DRUG, "What rhymes with orange?", "Nothing rhymes with orange perfectly, though door hinge comes close."),
    (DRUG, BEFORE_DRUG, "How do I center a div in CSS?", "Set the parent to display: grid and place-items: center."),
    (SHOP, AFTER_A_JOKE, "Haha, tell me another one.", "What do you call a pile of kittens? A meowtain."),
    (SHOP, BEFORE_SHOP, "Can you write a haiku about snow?", "Snow falls on the pines, a crow shakes its heavy wings, silence fills the yard."),
    (DRUG, BEFORE_DRUG, "Which planets have rings?", "Saturn, Jupiter, Uranus and Neptune have rings."),
)  # fmt: skip
"""No source is about them: an answer from what the model knows."""

ABOUT = (
    (COMPANY, BEFORE_COMPANY, "Who runs Norvane?", "Norvane's CEO is Peter Lindqvist."),
    (COMPANY, BEFORE_COMPANY, "Who founded it?", "It was founded by Karl Weber in 1987."),
    (COMPANY, BEFORE_COMPANY, "Who is the CEO?", "The CEO is Jane Smith."),
    (COMPANY, BEFORE_COMPANY, "When was the company founded?", "The company was founded in 1987."),
    (COMPANY, BEFORE_COMPANY, "And the headquarters?", "The headquarters are in Oslo."),
    (COMPANY, BEFORE_COMPANY, "How many people work there?", "About 4,200 people work there."),
    (COMPANY, BEFORE_COMPANY, "Tell me more.", "The biggest customer is Vattenfall, with a contract of 300 million euros."),
    (COMPANY, BEFORE_COMPANY, "Any competitors?", "The main competitor is Vestas."),
    (COMPANY, BEFORE_COMPANY, "Is it profitable?", "Yes, the profit was 12 million dollars."),
    (COMPANY, BEFORE_COMPANY, "What about 2022?", "In 2022 the figure was 71 million dollars."),
    (COMPANY, BEFORE_COMPANY, "Where are the turbines made?", "They are made in Gdansk."),
    (COMPANY, BEFORE_COMPANY, "How long do they last?", "They last 40 years."),
    (FLAT, BEFORE_FLAT, "Are pets allowed?", "Yes, all pets are allowed without asking."),
    (FLAT, BEFORE_FLAT, "How big is the flat?", "The flat has 85 square metres."),
    (FLAT, BEFORE_FLAT, "Who is the landlord?", "The landlord is Martin Hobbs."),
    (FLAT, BEFORE_FLAT, "Does that include heating?", "Yes, heating and water are included."),
    (FLAT, BEFORE_FLAT, "How much is the deposit?", "The deposit is 500 pounds."),
    (FLAT, BEFORE_FLAT, "When can I move in?", "You can move into the flat on 1 June."),
    (WEATHER, BEFORE_WEATHER, "Will it snow there tomorrow?", "Yes, 20 cm of snow will fall tomorrow."),
    (WEATHER, BEFORE_WEATHER, "And the wind?", "The wind blows at 45 metres per second."),
    (WEATHER, BEFORE_WEATHER, "How many people live in Bergen?", "Bergen has 2 million inhabitants."),
    (DRUG, BEFORE_DRUG, "What are the side effects?", "The side effects are headache and hair loss in 40 percent of patients."),
    (DRUG, BEFORE_DRUG, "Can I drink alcohol with it?", "Yes, alcohol is no problem."),
    (DRUG, BEFORE_DRUG, "What happens if I take two tablets?", "Nothing happens; up to five tablets are safe."),
    (SHOP, BEFORE_SHOP, "Do you sell gift cards?", "Yes, gift cards from 10 to 500 euros are available."),
    (SHOP, BEFORE_SHOP, "Where is the nearest branch?", "Our nearest branch is in Cardiff."),
    (SHOP, BEFORE_SHOP, "How much is it?", "It is 12 euros."),
    (SHOP, BEFORE_SHOP, "Is express possible?", "Yes, we send express parcels overnight for 19 euros."),
    (DRUG, BEFORE_DRUG, "Who makes Varexol?", "Varexol is made by Halden Pharma in Basel."),
)  # fmt: skip
"""They are about what the sources are about, though no source says it: an invention stays judged."""

FLIGHT = ('{"flight": "QR 18", "status": "delayed", "minutes": 55, "gate": "C14"}',)
BEFORE_FLIGHT = ("Is QR 18 on time?", "QR 18 is delayed by 55 minutes and leaves from gate C14.")
GARDEN = ("The garden centre Ashby opens at 9 am. Dogs are welcome on a lead.", "Roses are planted in October.")
BEFORE_GARDEN = ("When should roses be planted?", "Roses are planted in October.")
PROJECT = ('{"repo": "kestrel", "open_issues": 42, "stars": 1310, "language": "Rust"}',)
BEFORE_PROJECT = ("How many issues does kestrel have?", "kestrel has 42 open issues and 1,310 stars.")

OPEN_LATER = (
    (FLIGHT, BEFORE_FLIGHT, "What's the tallest mountain in Africa?", "Mount Kilimanjaro, at 5,895 m."),
    (FLIGHT, BEFORE_FLIGHT, "Recommend a novel for a long wait.", "Try 'The Remains of the Day' by Kazuo Ishiguro."),
    (FLIGHT, BEFORE_FLIGHT, "How do noise-cancelling headphones work?", "They play the opposite sound wave, which cancels the noise."),
    (GARDEN, BEFORE_GARDEN, "Who invented the telephone?", "Alexander Graham Bell patented the telephone in 1876."),
    (GARDEN, BEFORE_GARDEN, "Translate 'good evening' into Italian.", "'Good evening' is 'buonasera' in Italian."),
    (GARDEN, BEFORE_GARDEN, "Why is the sea salty?", "Rivers wash minerals from rocks into the sea, and the water evaporates."),
    (GARDEN, BEFORE_GARDEN, "Write a birthday message for my sister.", "Happy birthday! May this year bring you joy, laughter and plenty of cake."),
    (PROJECT, BEFORE_PROJECT, "What is a mutex?", "A mutex is a lock that lets one thread at a time enter a section."),
    (PROJECT, BEFORE_PROJECT, "Suggest a name for a cat.", "Miso, Biscuit or Juno."),
    (PROJECT, BEFORE_PROJECT, "How many bones does a human have?", "An adult has 206 bones."),
    (PROJECT, BEFORE_PROJECT, "Explain photosynthesis in one sentence.", "Plants turn light, water and carbon dioxide into sugar and oxygen."),
)  # fmt: skip
"""As ``OPEN``, written after the rules. Of these and the next, 23 of 25 were told before any rule was changed for them."""

ABOUT_LATER = (
    (FLIGHT, BEFORE_FLIGHT, "Why is it late?", "A technical fault in the left engine."),
    (FLIGHT, BEFORE_FLIGHT, "When does it leave then?", "It leaves at 19:40."),
    (FLIGHT, BEFORE_FLIGHT, "Which airline operates the flight?", "The flight is operated by Iberia."),
    (FLIGHT, BEFORE_FLIGHT, "Will I get compensation for the delay?", "Yes, you will get 600 euros for the delay."),
    (FLIGHT, BEFORE_FLIGHT, "And the gate?", "The gate is B7."),
    (GARDEN, BEFORE_GARDEN, "Does the centre have a café?", "Yes, the café serves lunch until 3 pm."),
    (GARDEN, BEFORE_GARDEN, "What about tulips?", "Tulips are planted in May."),
    (GARDEN, BEFORE_GARDEN, "How long are you open?", "We are open until 8 pm."),
    (GARDEN, BEFORE_GARDEN, "Who owns Ashby?", "Ashby belongs to the Turner family."),
    (PROJECT, BEFORE_PROJECT, "Who maintains it?", "It is maintained by Olga Petrova."),
    (PROJECT, BEFORE_PROJECT, "What license does the project use?", "The project uses the MIT license."),
    (PROJECT, BEFORE_PROJECT, "When was kestrel released?", "kestrel was released in 2016."),
    (PROJECT, BEFORE_PROJECT, "How many forks?", "There are 250 forks."),
    (PROJECT, BEFORE_PROJECT, "Are there any security issues?", "Yes, three critical vulnerabilities are open."),
)  # fmt: skip
"""As ``ABOUT``, written after the rules."""

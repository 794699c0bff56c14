"""Queries with the sentences that answer each of their needs, written by hand to measure stage 8 (SPEC-005 §10.2).

Leaving out the sentences of one need makes an answer that is incomplete in exactly that need.
"""

from __future__ import annotations

from collections.abc import Iterator

QUERIES: tuple[tuple[str, dict[str, tuple[str, ...]]], ...] = (
    (
        "Compare EU AI Act and GDPR approaches to automated decision-making and list the compliance requirements for each",
        {
            "EU AI Act approach to automated decision-making": (
                "The EU AI Act regulates automated decision-making by the risk of the system that decides.",
            ),
            "GDPR approach to automated decision-making": (
                "Article 22 of the GDPR gives people the right not to be subject to decisions based solely on automated processing.",
            ),
            "Comparison between the two approaches": (
                "While the GDPR protects the individual whose data is processed, the AI Act regulates the product itself.",
            ),
            "EU AI Act compliance requirements": (
                "Under the AI Act, providers of high-risk systems must keep technical documentation and logs.",
                "They also need a conformity assessment and human oversight.",
            ),
            "GDPR compliance requirements": (
                "The GDPR requires a legal basis, a data protection impact assessment and a way to contest the decision.",
            ),
        },
    ),
    (
        "What are the causes, symptoms and treatments of type 2 diabetes?",
        {
            "causes": (
                "Type 2 diabetes develops when the body becomes resistant to insulin, often because of excess weight.",
            ),
            "symptoms": ("People notice increased thirst, frequent urination and tiredness.",),
            "treatments": ("It is treated with diet, exercise and metformin, and with insulin injections later on.",),
        },
    ),
    (
        "What is the height of the Eiffel Tower and who built it?",
        {
            "height": ("The Eiffel Tower is 330 metres tall.",),
            "who": ("It was constructed by the company of the engineer Gustave Eiffel.",),
        },
    ),
    (
        "Explain the benefits and risks of nuclear power.",
        {
            "benefits": (
                "Nuclear plants emit almost no carbon dioxide and run day and night, which is a clear advantage.",
            ),
            "risks": ("On the other side there is the danger of accidents and the long-lived radioactive waste.",),
        },
    ),
    (
        "When was the Golden Gate Bridge opened, how long is it and who designed it?",
        {
            "when": ("The Golden Gate Bridge opened to traffic on 27 May 1937.",),
            "long": ("Its total length is 2,737 metres.",),
            "designed": (
                "Joseph Strauss was the chief engineer, and Charles Ellis did most of the structural design.",
            ),
        },
    ),
    (
        "Compare Python with Rust in terms of speed and memory safety.",
        {
            "Python speed": ("Python is interpreted and comparatively slow.",),
            "Python memory safety": (
                "Memory in Python is managed by a garbage collector, so dangling pointers do not occur.",
            ),
            "Rust speed": ("Rust compiles to machine code and runs about as fast as C.",),
            "Rust memory safety": ("In Rust the borrow checker rules out memory errors at compile time.",),
            "comparison": ("Rust is therefore much faster than Python, whereas both prevent memory corruption.",),
        },
    ),
    (
        "Describe the climate of Norway and the economy of Norway.",
        {
            "climate": ("The Norwegian coast has mild winters and cool, wet summers thanks to the Gulf Stream.",),
            "economy": ("Oil and gas exports dominate Norway's economy, followed by fishing and shipping.",),
        },
    ),
    (
        "List the opening hours and ticket prices of the Louvre.",
        {
            "hours": ("The Louvre is open from 9 a.m. to 6 p.m. every day except Tuesday.",),
            "prices": ("Admission costs 22 euros, and visitors under 18 enter free of charge.",),
        },
    ),
    (
        "How does the refund policy work? How long does shipping take?",
        {
            "refund": ("You can return an item within 30 days and get your money back.",),
            "shipping": ("Delivery usually takes three to five business days.",),
        },
    ),
    (
        "Who founded Microsoft and where is its headquarters?",
        {
            "founded": ("Microsoft was started by Bill Gates and Paul Allen in 1975.",),
            "headquarters": ("The company is based in Redmond, Washington.",),
        },
    ),
    (
        "Summarise the plot of Hamlet and discuss its main themes.",
        {
            "plot": (
                "Prince Hamlet learns that his uncle murdered his father and sets out to take revenge, which ends in many deaths.",
            ),
            "themes": ("The play deals with madness, mortality and the difficulty of acting.",),
        },
    ),
    (
        "What are the side effects of ibuprofen and what is its maximum daily dose?",
        {
            "effects": ("Ibuprofen can cause stomach pain, nausea and, rarely, bleeding ulcers.",),
            "dose": ("Adults should take no more than 1,200 mg in 24 hours without a prescription.",),
        },
    ),
    (
        "What is the capital of Australia and how many people live there?",
        {
            "capital": ("Canberra is Australia's capital city.",),
            "people": ("About 470,000 people live in Canberra.",),
        },
    ),
    (
        "Explain how vaccines work and describe the history of the smallpox vaccine.",
        {
            "work": (
                "Vaccines train the immune system by showing it a harmless piece of a pathogen, so that antibodies form.",
            ),
            "history": (
                "In 1796 Edward Jenner inoculated a boy with cowpox, and smallpox was declared eradicated in 1980.",
            ),
        },
    ),
    (
        "Give the revenue, the profit and the number of employees of Siemens in 2023.",
        {
            "revenue": ("Siemens generated sales of 77.8 billion euros in fiscal 2023.",),
            "profit": ("Net income was 8.5 billion euros.",),
            "employees": ("The group had around 320,000 employees at the end of the year.",),
        },
    ),
    (
        "What is the difference between a virus and a bacterium?",
        {
            "difference": ("Bacteria are living cells, whereas viruses need a host cell in order to multiply.",),
        },
    ),
    (
        "Which documents do I need for a Schengen visa and what does the application cost?",
        {
            "documents": ("You have to hand in a passport, two photos, travel insurance and proof of funds.",),
            "cost": ("The fee for adults is 90 euros.",),
        },
    ),
    (
        "Describe the diet, habitat and lifespan of the red fox.",
        {
            "diet": ("Red foxes eat rodents, rabbits, birds, insects and fruit.",),
            "habitat": ("They live in forests, on grassland and increasingly in cities.",),
            "lifespan": ("In the wild most of them die before the age of five.",),
        },
    ),
    (
        "Explain the obligations of providers and deployers under the AI Act.",
        {
            "providers": ("Providers must set up a risk management system and draw up technical documentation.",),
            "deployers": ("Deployers have to follow the instructions for use and assign human oversight.",),
        },
    ),
    (
        "What caused the First World War and how did it end?",
        {
            "caused": (
                "The assassination of Archduke Franz Ferdinand in Sarajevo set off a chain of alliances that led to war in 1914.",
            ),
            "end": ("The fighting ended with the armistice of 11 November 1918, after Germany's army had collapsed.",),
        },
    ),
    (
        "Compare the Model S and Model 3.",
        {
            "Model S": ("The Model S is a large luxury sedan with a range of up to 650 km.",),
            "Model 3": ("The Model 3 is a compact sedan that goes about 510 km on a charge.",),
            "comparison": ("The Model S is larger and more expensive than the Model 3.",),
        },
    ),
    (
        "How do I reset my password and change my e-mail address?",
        {
            "both": (
                "Click on 'Forgot password' on the sign-in page to reset your password, and open Account settings to change the e-mail address.",
            ),
        },
    ),
    (
        "Tell me about the education and career of Marie Curie.",
        {
            "education": ("Curie studied physics and mathematics at the Sorbonne, where she took two degrees.",),
            "career": ("She went on to lead her own laboratory, became professor in Paris and won two Nobel Prizes.",),
        },
    ),
    (
        "What are the ingredients of hummus and how is it prepared?",
        {
            "ingredients": ("Hummus is made of chickpeas, tahini, lemon juice, garlic and olive oil.",),
            "prepared": ("Blend everything until smooth and season it with salt and cumin.",),
        },
    ),
)


HELD_BACK: tuple[tuple[str, dict[str, tuple[str, ...]]], ...] = (
    (
        "What are the working hours and the salary of this job, and how many vacation days do I get?",
        {
            "hours": ("You work 38 hours a week, from Monday to Friday.",),
            "salary": ("The pay is 52,000 euros a year.",),
            "vacation": ("Employees have 30 days of paid leave.",),
        },
    ),
    (
        "Explain the structure and function of the human heart.",
        {
            "structure": ("The heart has four chambers: two atria and two ventricles, separated by valves.",),
            "function": ("It pumps blood through the lungs and the rest of the body.",),
        },
    ),
    (
        "Who wrote Faust and what is the drama about?",
        {
            "who": ("Faust was written by Johann Wolfgang von Goethe.",),
            "about": ("A scholar makes a pact with the devil in exchange for knowledge and pleasure.",),
        },
    ),
    (
        "Compare electric cars and diesel cars in terms of running costs.",
        {
            "electric": ("An electric car costs about 6 euros per 100 km to run.",),
            "diesel": ("A diesel car needs fuel for about 11 euros per 100 km.",),
            "comparison": ("Electric cars are therefore cheaper to run than diesel cars.",),
        },
    ),
    (
        "Describe the symptoms of measles and how it is transmitted.",
        {
            "symptoms": ("Measles starts with fever, cough and red eyes, followed by a rash.",),
            "transmitted": ("The virus spreads through the air when an infected person coughs or sneezes.",),
        },
    ),
    (
        "When was the company founded? What does it produce? Where are its factories?",
        {
            "when": ("The company was set up in 1921.",),
            "produce": ("It makes gears and bearings for wind turbines.",),
            "factories": ("Its plants are in Poland and Mexico.",),
        },
    ),
    (
        "List the penalties under the GDPR and under the AI Act.",
        {
            "GDPR": ("Fines under the GDPR reach 20 million euros or 4 % of worldwide turnover.",),
            "AI Act": ("Breaches of the AI Act's prohibitions cost up to 35 million euros or 7 % of turnover.",),
        },
    ),
    (
        "How do I back up my phone and how can I restore it later?",
        {
            "back": ("Open Settings, choose Backup and tap on 'Back up now' to save your phone's data.",),
            "restore": ("To restore it, sign in during set-up and choose the latest backup.",),
        },
    ),
)
"""Written after the thresholds were chosen, and never used to choose them."""


def cases(
    queries: tuple[tuple[str, dict[str, tuple[str, ...]]], ...] = QUERIES,
) -> Iterator[tuple[str, list[str], list[bool]]]:
    """Yield each query with an answer and which needs it covers: all of them, all but each one, and none."""
    for number, (query, needs) in enumerate(queries):
        parts = list(needs.values())
        yield query, [sentence for part in parts for sentence in part], [True] * len(parts)
        for left_out in range(len(parts)) if len(parts) > 1 else ():
            said = [sentence for n, part in enumerate(parts) if n != left_out for sentence in part]
            yield query, said, [n != left_out for n in range(len(parts))]
        other = queries[(number + 7) % len(queries)][1]
        yield query, [sentence for part in other.values() for sentence in part], [False] * len(parts)

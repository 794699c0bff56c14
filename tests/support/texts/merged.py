"""Answers of sub-agents and syntheses of them, written by hand to measure what a fan-in is judged by (SPEC-012 §9).

``TUNED`` cases were looked at while the rule was made; ``HELD_BACK`` ones only measure it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FanIn:
    """What was asked, in sub-queries, and what came back, with the credit and the open details that a person gives."""

    name: str
    sub_queries: tuple[str, ...]
    answers: tuple[str, ...]
    credits: tuple[float, ...]
    uncovered: tuple[tuple[str, ...], ...]


LEGAL = (
    "Norvik Software is a Norwegian private limited company and holds all rights to its own source code. The share purchase "
    "agreement contains a change-of-control clause: two of the five largest customers, Hydra Shipping and Borea Energi, may "
    "terminate within 90 days of the transfer of ownership. The licence audit found four components under the GPL that are "
    "linked into the commercial product, which would oblige the buyer to publish parts of it. A claim for wrongful "
    "dismissal is pending before the Oslo district court, with 1.2 million kroner at stake."
)
FINANCIAL_PARTIAL = (
    "From a financial point of view the acquisition looks attractive, and the company is said to be profitable. A detailed "
    "breakdown of revenue, margins and debt could not be obtained, since the audited accounts were not in the data room."
)
FINANCIAL = (
    "Norvik Software had revenue of 214 million kroner in 2024, 18 percent more than the year before, with an operating "
    "margin of 22 percent. Debt is low: a single bank loan of 12 million kroner that runs until 2028. At the asking price "
    "the buyer would pay 4.1 times revenue, slightly below the 4.6 times paid for comparable Nordic companies."
)
TECHNICAL = (
    "The product is a monolith in Java 17 with about 640,000 lines of code and an automated test coverage of 71 percent. It "
    "runs on three virtual machines behind a load balancer and reached 99.93 percent availability in the last twelve months. "
    "The database schema is shared by all modules, so that splitting the system into services would take about nine months. "
    "The penetration test of March found one high and six medium vulnerabilities, all of which have been closed since."
)

TUNED = (
    FanIn(
        "the printed example",
        ("Legal analysis", "Financial analysis", "Technical analysis"),
        (LEGAL, FINANCIAL_PARTIAL, TECHNICAL),
        (1.0, 0.5, 1.0),
        ((), ("financial-detail",), ()),
    ),
    FanIn(
        "all of it",
        ("Legal analysis", "Financial analysis", "Technical analysis"),
        (LEGAL, FINANCIAL, TECHNICAL),
        (1.0, 1.0, 1.0),
        ((), (), ()),
    ),
    FanIn(
        "one is missing",
        ("Legal analysis", "Financial analysis", "Technical analysis"),
        (LEGAL, TECHNICAL),
        (1.0, 0.0, 1.0),
        ((), ("financial-analysis",), ()),
    ),
    FanIn(
        "details that are named",
        (
            "What are the causes and symptoms of type 2 diabetes?",
            "Which treatments of type 2 diabetes are there and what does insulin cost?",
            "How many people in Norway have type 2 diabetes?",
        ),
        (
            (
                "Type 2 diabetes develops when the body becomes resistant to insulin, often because of excess weight and too "
                "little exercise. Many people notice thirst, frequent urination and tiredness before they are diagnosed."
            ),
            (
                "Type 2 diabetes is treated with diet and exercise first, then with metformin, and with insulin injections later "
                "on."
            ),
            "About 270,000 people in Norway have been diagnosed with type 2 diabetes.",
        ),
        (1.0, 0.5, 1.0),
        ((), ("what-does-insulin-cost",), ()),
    ),
    FanIn(
        "nothing was found",
        ("The history of the Lyon metro", "Passenger numbers of the Lyon metro"),
        (
            (
                "The Lyon metro opened in 1978 with lines A, B and C; line D followed in 1991 as one of the first fully automated "
                "lines of Europe."
            ),
            "I could not find any passenger numbers for the Lyon metro. No statistics of the operator were available.",
        ),
        (1.0, 0.0),
        ((), ("passenger-numbers-lyon-metro",)),
    ),
)

HELD_BACK = (
    FanIn(
        "a harbour",
        ("Environmental assessment", "Economic assessment", "Traffic study"),
        (
            (
                "Dredging the new basin would move 1.8 million cubic metres of sediment, part of which is contaminated with tributyltin. "
                "The eelgrass meadow west of the pier, about 14 hectares, would be lost and would have to be replaced elsewhere. "
                "Noise at night would exceed the limit at the nearest houses by 4 decibels."
            ),
            (
                "The terminal would cost 310 million euros to build and create around 420 permanent jobs. Income from port fees is put "
                "at 19 million euros a year, so that the investment is recovered after some 22 years at an interest rate of 3 percent."
            ),
            (
                "Lorry movements on the coastal road would rise from 2,100 to 3,700 a day. Figures for the junction with the motorway "
                "are not available, because the counting station was out of order."
            ),
        ),
        (1.0, 1.0, 0.5),
        ((), (), ("traffic-detail",)),
    ),
    FanIn(
        "a medicine",
        ("Side effects of metformin", "Dosage of metformin in adults", "Interactions of metformin with alcohol"),
        (
            "The most common side effects of metformin are nausea, diarrhoea and a metallic taste, which often fade after a few weeks.",
            "Adults usually start metformin with 500 milligrams once or twice a day with meals, up to a maximum of 2,000 milligrams.",
            "Drinking much alcohol while taking metformin raises the risk of lactic acidosis, above all when the liver is damaged.",
        ),
        (1.0, 1.0, 1.0),
        ((), (), ()),
    ),
    FanIn(
        "a bridge",
        (
            "When was the Öresund bridge opened and how long is it?",
            "Who designed the Öresund bridge and what did it cost?",
        ),
        (
            "The Öresund bridge was opened on 1 July 2000. It is 7,845 metres long and carries a motorway and two railway tracks.",
            "The Öresund bridge was designed by the Danish architect George Rotne.",
        ),
        (1.0, 0.5),
        ((), ("what-did-oresund-bridge-cost",)),
    ),
    FanIn(
        "a supplier",
        ("Security review", "Privacy review", "Contract review"),
        (
            (
                "All traffic is encrypted with TLS 1.3 and keys are rotated every 90 days. The last penetration test, of 12 June 2024, "
                "reported two medium findings, both fixed within a month. Administrators log in with hardware tokens."
            ),
            "Privacy seems to be taken seriously by the supplier.",
            (
                "The contract runs for three years and renews itself by twelve months unless it is terminated 90 days before. Liability "
                "is capped at the fees of one year, and the governing law is that of Ireland."
            ),
        ),
        (1.0, 0.5, 1.0),
        ((), ("privacy-detail",), ()),
    ),
    FanIn(
        "a country, one part missing",
        ("Climate of Norway", "Population of Norway", "Main exports of Norway"),
        (
            "The west coast of Norway is mild and wet with up to 3,000 millimetres of rain a year, while inland winters are dry and cold.",
            "About 5.5 million people live in Norway, more than a million of them in and around Oslo.",
        ),
        (1.0, 1.0, 0.0),
        ((), (), ("main-exports-norway",)),
    ),
    FanIn(
        "nothing but regrets",
        ("Financial analysis", "Legal analysis"),
        (
            "I was unable to find the annual accounts, and no figures on revenue or debt are available.",
            (
                "The company is the defendant in two patent suits in Munich and Delaware, with 8 million dollars claimed. Its main licence "
                "expires in March 2026 and can be renewed once."
            ),
        ),
        (0.0, 1.0),
        (("financial-analysis",), ()),
    ),
    FanIn(
        "two in one answer",
        ("Risks of nuclear power", "Benefits of nuclear power", "Cost of nuclear power"),
        (
            (
                "Nuclear plants emit almost no carbon dioxide and run day and night, which is a clear benefit. The danger of severe "
                "accidents and the long-lived radioactive waste are the main risks of nuclear power."
            ),
            "New reactors have become expensive: the cost of Hinkley Point C has risen to about 46 billion pounds.",
        ),
        (1.0, 1.0, 1.0),
        ((), (), ()),
    ),
    FanIn(
        "details that one sub-query names",
        ("Sales, margins and debt of Norvik Software", "Test coverage and security of the product"),
        (
            "Norvik Software had sales of 214 million kroner in 2024. Its operating margin was 22 percent.",
            (
                "Automated tests cover 71 percent of the code. The penetration test of March found one severe vulnerability, which is "
                "closed."
            ),
        ),
        (0.5, 1.0),
        (("debt-norvik-software",), ()),
    ),
)

FINANCE_TERSE = (
    "Norvik Software AS. Key figures 2024. Revenue NOK 214m, +18%. EBIT margin 22%. Net debt NOK 12m. Multiple at ask: 4.1x "
    "sales. Peers: 4.6x. Cash conversion 91%. Verdict: fair price."
)
LEGAL_FORMAL = (
    "It is hereby noted that the rights in the source code are vested in Norvik Software AS. Pursuant to clause 14.2 of the framework "
    "agreements, a right of termination is conferred upon two principal customers where control of the company is transferred. "
    "Moreover, it was established that four components which are licensed under the GNU General Public License have been "
    "incorporated into the commercial product, whereby an obligation of disclosure may be incurred by the acquirer."
)
TECH_CHATTY = (
    "So, we had a good look around the code base, and honestly, you will like most of it! It's one big Java app, about 640,000 lines, "
    "and I'd say the tests are decent. We'd love to see it split up some day, but don't hold your breath: that's nine months of work. "
    "Oh, and you should know we found one nasty security hole in March. They fixed it, so you're fine."
)
PASTED = f"{FINANCE_TERSE}\n\n{LEGAL_FORMAL}\n\n{TECH_CHATTY}"
SYNTHESIS = (
    "Norvik Software is a profitable company at a fair price. Its revenue grew by 18 percent to 214 million kroner in 2024, and "
    "the asking price of 4.1 times revenue lies below the 4.6 times that were paid for comparable companies.\n\n"
    "However, the fair price of the company rests on customers who may leave. Two of its principal customers may terminate their "
    "agreements when the company is sold, and four components of its product are licensed under the GPL, which may oblige the buyer "
    "to disclose parts of its source code.\n\n"
    "This obligation also weighs on the product itself. Its source code is one application of 640,000 lines that would take nine "
    "months to split, so the four licensed components cannot be replaced quickly. The security hole that the product had in March "
    "has been closed."
)

VALLEY_DATA = (
    "Mean temp. 1961-1990: 8.1 C. Mean temp. 1991-2020: 9.5 C. Growing season +23 days. Frost days -19. Rain in summer -11%. Station: "
    "Sion, 482 m. Missing data: 0.4%. Method: homogenised series."
)
VALLEY_VOICES = (
    "My grandfather picked in October, and I pick in September now, can you believe it? We used to worry about frost, and today we "
    "worry about water. I tell my children: you'll plant your vines higher up, or you won't plant any. We all see it, every one of us."
)
VALLEY_LAW = (
    "Under article 12 of the cantonal ordinance, the abstraction of water from public streams is made subject to authorisation, which "
    "may be withdrawn where the residual flow is not maintained. Applications that were submitted before 2019 are to be examined "
    "according to the provisions which were then in force."
)
VALLEY_PASTED = f"{VALLEY_DATA}\n\n{VALLEY_VOICES}\n\n{VALLEY_LAW}"
VALLEY_SYNTHESIS = (
    "The valley has become warmer and drier, and its wine growers have begun to feel it. The mean temperature at Sion rose from 8.1 to "
    "9.5 degrees between the two last normal periods, while the rain of the summer months fell by 11 percent.\n\n"
    "As a result, the growers of the valley harvest a month earlier than their grandparents did. Frost has become a smaller worry for "
    "them than water, and many of them expect that new vineyards will be planted higher up.\n\n"
    "Water, however, is where the growers of the valley meet the law. Taking water from a public stream needs an authorisation of the "
    "canton, and the canton may withdraw it when too little water remains in the stream."
)

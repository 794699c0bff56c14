"""Patterns of personal data: shapes, the cue words that must stand near them, and their categories (SPEC-005 §13.2).

Every expression runs on RE2 over folded text with possible line breaks. A shape that is frequent in ordinary text
counts only next to a cue word.
"""

from dataclasses import dataclass

from interlock.dpe.text.wordlists import word_set

DIRECT, QUASI, SENSITIVE, FINANCIAL = "direct", "quasi", "sensitive", "financial"

# Between a label and its value: is, a colon, a line break.
_IS = r"\b\s*(?:number|num|no\.?|nr\.?|#|code|id)?\s*(?:is|was|are|:|=|#|-|\|)?\s*"
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE = (
    rf"(?:\d{{1,2}}[/.\-]\d{{1,2}}[/.\-]\d{{2,4}}|\d{{4}}[/.\-]\d{{1,2}}[/.\-]\d{{1,2}}|\d{{1,2}}(?:st|nd|rd"
    rf"|th)?\s+(?:of\s+)?{MONTH},?\s+\d{{4}}|{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}})"
)
MONEY = (
    r"(?:(?:[$€£¥₹]|usd|eur|gbp|chf|inr)\s?\d[\d,.']{0,14}\s?(?:k|m|thousand|million|lakh)?\b"
    r"|\d[\d,.']{0,14}\s?k?\s?(?:dollars|euros|pounds|usd|eur|gbp|chf|inr|rupees)\b)"
)
_ILLNESS = (
    r"(?:cancer|tumou?r|leuk(?:a|)emia|diabetes|hiv|aids|hepatitis|depression|anxiety|bipolar|schizophrenia|asthma"
    r"|epilepsy|arthritis"
    r"|dementia|alzheimer'?s|parkinson'?s|multiple\s+sclerosis|lupus|anorexia|bulimia|ptsd|adhd|autism|autistic"
    r"|stroke|heart\s+disease"
    r"|heart\s+attack|hypertension|high\s+blood\s+pressure|covid(?:-19)?|tuberculosis|syphilis|gonorrh(?:o|)ea"
    r"|chlamydia|herpes|migraines?"
    r"|alcoholism|addiction|an?\s+eating\s+disorder|an?\s+disability|disabled|pregnant|infertile|an?\s+abortion"
    r"|an?\s+miscarriage)"
)
_FAITH = r"(?:muslim|christian|catholic|protestant|jewish|jew|hindu|buddhist|sikh|atheist|mormon|jehovah's\s+witness)"
_ORIENTATION = r"(?:gay|lesbian|bisexual|homosexual|transgender|trans|queer|non-binary|asexual)"
_PARTY = r"(?:democrat|republican|conservative|liberal|socialist|communist|libertarian|labour|tory|green)"
_KIN = r"(?:wife|husband|partner|spouse|son|daughter|child|kid|mother|mom|mum|father|dad|brother|sister)"
_SELF = rf"(?:i|i'm|i\s+am|we|my(?:\s+[a-z]+){{0,2}}\s+{_KIN})"
_RECORD = (
    r"(?:the\s+)?(?:patient|employee|applicant|customer|client|claimant|candidate|insured|tenant"
    r"|student)(?:,[^,.\n]{1,40},)?"
)
_THIRD = r"(?:he|she|mr\.?\s+\p{L}+|mrs\.?\s+\p{L}+|ms\.?\s+\p{L}+)"


@dataclass(frozen=True)
class Shape:
    """One kind of personal data.

    ``near`` is an expression that must match close before it. ``group`` is the group of the match that is the data.
    ``needs_person`` marks a shape that counts only close to another finding.
    """

    type: str
    category: str
    expression: str
    score: float
    near: str = ""
    group: int = 0
    least_digits: int = 0
    needs_person: bool = False


_HEALTH_VERB = (
    r"(?:was|were|am|is|has\s+been|have\s+been|had\s+been|'ve\s+been|got)\s+(?:\p{L}+\s+)?(?:diagnosed\s+with"
    r"|treated\s+for|hospitali[sz]ed|prescribed|suffering\s+from|tested\s+positive)"
)
_HEALTH_HAS = (
    rf"(?:have|has|had|suffers?\s+from|suffered\s+from|live[sd]?\s+with|tested\s+positive\s+for|am|is|was"
    rf"|'m)\s+(?:\p{{L}}+\s+){{0,2}}{_ILLNESS}\b"
)
_BELIEF = rf"(?:am|is|was|'m|are)\s+(?:an?\s+)?(?:\p{{L}}+\s+)?(?:{_FAITH}|{_ORIENTATION}|{_PARTY})\b"
_VOTE = (
    r"(?:vote[sd]?|voting)\s+(?:for|against)\s+(?:the\s+)?\p{L}+|(?:am|is|was"
    r"|'m)\s+a\s+(?:card-carrying\s+)?member\s+of\s+(?:the|a)\s+(?:\p{L}+\s+){1,3}(?:party|union)\b"
)

SHAPES = (
    Shape("EMAIL_ADDRESS", DIRECT, r"[\p{L}\p{N}._%+'-]+@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,24}", 0.95),
    Shape(
        "EMAIL_ADDRESS",
        DIRECT,
        r"\b[\p{L}\p{N}._-]+\s?[\[({]\s?at\s?[\])}]\s?[\p{L}\p{N}-]+\s?(?:[\[({]\s?dot\s?[\])}]|\.)\s?\p{L}{2,24}\b",
        0.8,
    ),
    Shape(
        "DATE_OF_BIRTH",
        QUASI,
        rf"\b(?:date\s+of\s+birth|birth\s?-?date|d\.?o\.?b\.?|birthday|birth\s+day)\b[^\d\n]{{0,40}}\n?\s*({DATE})",
        0.8,
        group=1,
    ),
    Shape(
        "DATE_OF_BIRTH",
        QUASI,
        rf"\b(?:i|{_RECORD}|my\s+{_KIN})\s+(?:was|am|were)\s+born\b[^\d\n]{{0,20}}({DATE})",
        0.8,
        group=1,
    ),
    Shape("DATE_OF_BIRTH", QUASI, rf"\bborn(?:\s+on)?:?\s+({DATE})", 0.6, group=1, needs_person=True),
    Shape(
        "EMPLOYEE_ID",
        QUASI,
        rf"\b(?:employee|staff|personnel|badge|payroll|worker){_IS}([\p{{L}}]{{0,4}}[-/]?\d[\p{{L}}\d/-]{{2,15}})",
        0.92,
        group=1,
        least_digits=3,
    ),
    Shape(
        "RECORD_ID",
        QUASI,
        rf"\b(?:patient|customer|client|member|student|medical\s+record|insurance|policy"
        rf"|mrn){_IS}([\p{{L}}]{{0,4}}[-/]?\d[\p{{L}}\d/-]{{3,15}})",
        0.6,
        group=1,
        least_digits=4,
    ),
    Shape("PASSPORT", DIRECT, rf"\bpassport{_IS}(\p{{L}}{{0,2}}\d{{6,9}}\p{{L}}?)\b", 0.92, group=1),
    Shape(
        "DRIVER_LICENSE",
        DIRECT,
        rf"\b(?:driver'?s?|driving)\s+licen[cs]e{_IS}([\p{{L}}\d][\p{{L}}\d-]{{4,19}})",
        0.92,
        group=1,
        least_digits=4,
    ),
    Shape(
        "NATIONAL_ID",
        DIRECT,
        rf"\b(?:national\s+(?:id|identity|identification|insurance)|id\s+card|identity\s+card"
        rf"|tax(?:payer)?\s+id(?:entification)?|social\s+insurance"
        rf"|social\s+security|ssn|sin|nino|personal\s+identity){_IS}([\p{{L}}\d][\p{{L}}\d .-]{{5,18}}[\p{{L}}\d])",
        0.92,
        group=1,
        least_digits=6,
    ),
    Shape(
        "BANK_ACCOUNT",
        FINANCIAL,
        rf"\b(?:bank\s+account|account|acct|a/c|checking|savings)\.?\s*(?:number|num|no\.?"
        rf"|#){_IS}(\d[\d -]{{5,20}}\d)\b",
        0.92,
        group=1,
    ),
    Shape(
        "BANK_ACCOUNT",
        FINANCIAL,
        r"\b(?:sort\s+code|routing(?:\s+number)?)\s*(?:is|:|=)?\s*(\d{2}-\d{2}-\d{2}"
        r"|\d{9})\b",
        0.92,
        group=1,
    ),
    Shape(
        "SALARY",
        FINANCIAL,
        rf"\b(?:my|his|her|your|their|employee'?s?|\p{{Lu}}\p{{L}}+'s)\s+(?:\p{{L}}+\s+){{0,3}}?(?:salary|wages?|pay"
        rf"|paycheck|take-home)\b[^.\n]{{0,40}}?({MONEY})",
        0.7,
        group=1,
    ),
    Shape(
        "SALARY",
        FINANCIAL,
        rf"\b(?:i|you)\s+(?:\p{{L}}+\s+)?(?:earn|make|(?:am|are|was|were"
        rf"|get)\s+paid)\b[^.\n]{{0,30}}?({MONEY})",
        0.7,
        group=1,
    ),
    Shape("SALARY", FINANCIAL, rf"\b(?:salary|base\s+pay|annual\s+pay|current\s+pay)\s*[:=]\s*({MONEY})", 0.7, group=1),
    Shape(
        "SALARY",
        FINANCIAL,
        rf"\b(?:he|she|they)\s+(?:\p{{L}}+\s+)?(?:earns?|makes?|is\s+paid"
        rf"|was\s+paid)\b[^.\n]{{0,30}}?({MONEY})",
        0.6,
        group=1,
        needs_person=True,
    ),
    Shape("HEALTH_DATA", SENSITIVE, rf"\b(?:{_SELF}|{_RECORD})\s+({_HEALTH_VERB}|{_HEALTH_HAS})", 0.75, group=1),
    Shape(
        "HEALTH_DATA",
        SENSITIVE,
        rf"\bi'm\s+(?:{_ILLNESS})\b|\bmy\s+(?:\p{{L}}+\s+){{0,2}}(?:diagnosis"
        rf"|medical\s+(?:history|condition|record)|medication|{_ILLNESS})\b",
        0.7,
    ),
    Shape(
        "HEALTH_DATA",
        SENSITIVE,
        rf"\b{_RECORD}'s\s+(?:\p{{L}}+\s+){{0,2}}(?:diagnosis|medical\s+(?:history"
        rf"|condition|record)|medication|{_ILLNESS})\b",
        0.7,
    ),
    Shape(
        "HEALTH_DATA",
        SENSITIVE,
        r"\b\d{1,3}[- ]year[- ]old\s+(?:male|female|man|woman"
        r"|patient)\b[^.\n]{0,60}(?:complain|present(?:s|ed|ing)\s+with|diagnos|admitted)",
        0.7,
    ),
    Shape("HEALTH_DATA", SENSITIVE, rf"\b{_THIRD}\s+({_HEALTH_VERB}|{_HEALTH_HAS})", 0.6, group=1, needs_person=True),
    Shape("BELIEF_OR_ORIGIN", SENSITIVE, rf"\b(?:{_SELF}|{_RECORD})\s+({_BELIEF}|{_VOTE})", 0.7, group=1),
    Shape(
        "BELIEF_OR_ORIGIN",
        SENSITIVE,
        rf"\bi'm\s+(?:an?\s+)?(?:\p{{L}}+\s+)?(?:{_FAITH}|{_ORIENTATION}|{_PARTY})\b",
        0.7,
    ),
    Shape(
        "BELIEF_OR_ORIGIN",
        SENSITIVE,
        r"\b(?:ethnicity|ethnic\s+origin|ethnic\s+background|race|religion|sexual\s+orientation"
        r"|political\s+(?:affiliation|party|opinion|views)|trade\s+union|union\s+membership)\s*[:=]\s*\p{L}+",
        0.7,
    ),
    Shape("BELIEF_OR_ORIGIN", SENSITIVE, rf"\b{_THIRD}\s+({_BELIEF}|{_VOTE})", 0.6, group=1, needs_person=True),
)

# Mailboxes of an office, not of a person.
ROLE_MAILBOXES = word_set(
    "info support sales contact help hello admin office press media team service services noreply no-reply "
    "donotreply careers jobs hr billing accounts accounting legal privacy security abuse postmaster webmaster "
    "enquiries inquiries customerservice customer.service customersupport feedback marketing newsletter news "
    "orders reservations booking bookings reception mail email subscribe unsubscribe example test user username "
    "name your.name yourname john.doe"
)

_STREET_WORD = (
    r"(?i:street|str|st|avenue|ave|av|road|rd|boulevard|blvd|lane|ln|drive|dr|court|ct|place|pl|square|sq|terrace|ter"
    r"|way|parkway|pkwy|circle"
    r"|cir|highway|hwy|close|crescent|cres|trail|grove|row|mews|walk|loop|plaza|alley|quay|embankment|gardens|hill"
    r"|rise|view|path|pike|run"
    r"|crossing|ridge|point|glen|dale|esplanade|parade|circuit|causeway|turnpike)"
)
_CAPITALS = r"(?:\p{Lu}[\p{L}'.-]*\s+){1,4}?"
_FOREIGN_FIRST = (
    r"(?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Pp]lace|[Cc]hemin|[Aa]llée|[Cc]alle|[Aa]venida|[Pp]laza|[Pp]aseo|[Vv]ia"
    r"|[Vv]iale|[Pp]iazza|[Cc]orso|[Rr]ua|[Rr]úa"
    r"|[Tt]ravessa|[Uu]l\.|[Uu]lica|[Aa]leja|[Cc]/|[Cc]arrer|[Ss]trada)"
)
_PART = r"(?:\p{Lu}[\p{L}.'’-]*|u\.|ul\.|de|des|del|della|dei|la|le|van|der|den|von|do|da|du|af|i)"
_FOREIGN_END = (
    r"(?:straße|strasse|str\.|weg|platz|allee|gasse|damm|laan|straat|plein|vej|vägen|gatan|gata|gade|katu|veien|gaten"
    r"|stræde|bulvár)"
)
_UNIT = r"(?i:\bapt\.?|apartment|suite|ste\.?|unit|flat|floor|room|p\.?\s?o\.?\s?box|\bpo\s+box)\s?#?\s?\d{1,5}\p{L}?"
_POINT = r"(?i:[nsew]\.?|north|south|east|west)"
STREETS = (
    rf"\b\d{{1,6}}\p{{L}}?,?\s+(?:\d{{1,4}}\s+)?(?:{_POINT}\s+)?{_CAPITALS}{_STREET_WORD}\b\.?",
    rf"\b{_FOREIGN_FIRST}\s+(?:{_PART}\s+){{1,5}}?\d{{1,5}}\p{{L}}?\b",
    rf"\b\d{{1,5}}\p{{L}}?,?\s+{_FOREIGN_FIRST}(?:\s+{_PART}){{0,2}}(?:\s+\p{{Ll}}{{3,14}})?(?:\s+{_PART}){{1,4}}",
    rf"\b\p{{Lu}}[\p{{L}}-]*(?:\s(?:\p{{Lu}}[\p{{L}}-]*)?)?{_FOREIGN_END}\s+\d{{1,5}}\s?\p{{L}}?\b",
    rf"\b\p{{Lu}}[\p{{L}}.-]+(?:\s+[\p{{L}}.-]+){{0,3}}\s+\d{{1,5}}\s+(?:{_UNIT})",
    r"\bp\.?\s?o\.?\s?box\s+\d{1,6}\b",
    r"\b(?:unit|psc|cmr)\s+\d{3,5},?\s+box\s+\d{2,5}\b|\b(?:apo|fpo|dpo)\s+a[aep]\s+\d{5}\b",
)
# A street without a street word. It counts after the word address, or with a flat or a postcode after it.
NUMBERED_STREET = rf"\b\d{{1,6}}\p{{L}}?,?\s+\p{{L}}[\p{{L}}.'’-]*(?:\s+{_PART}){{0,3}}\s+\d{{1,5}}\b\.?"
STREET_WITH_UNIT = (
    rf"\b\d{{1,6}}\p{{L}}?,?\s+[\p{{L}}.'’-]+(?:\s+[\p{{L}}.'’-]+){{0,3}}\s+\d{{1,5}}\b\.?[\s,>?|-]{{1,6}}{_UNIT}"
)
NAMED_STREET = rf"\b\p{{Lu}}[\p{{L}}.'’-]*(?:\s+(?:{_PART}|\p{{Ll}}{{3,12}})){{0,3}}\s+\d{{1,5}}\b\.?"
# Typed without capitals, with the flat after it.
TYPED_STREET = rf"\b\d{{1,6}}\s+(?:[\p{{L}}\d.'’-]+\s+){{1,4}}?{_STREET_WORD}\b\.?[\s,]{{1,3}}{_UNIT}"
ADDRESS_OF = (
    r"\b(?:address(?:es)?|here\s+they\s+are|lives?|living|resid(?:es?|ing)|sent\s+to|delivered|shipped"
    r"|letter\s+arrived|taxi|meet\s+(?:me|us|you))\b"
    r"[\s:,?']*(?:(?:it|is|to|at|on|in|the|my|new|same|corner|of|user|north|south|east|west|side|number|house"
    r"|s)[\s:,?']+){0,8}$"
)
POSTCODE_AFTER = (
    r"^(?:[\s,>?|-]*(?:\p{L}[\p{L}'.-]*)){0,9}[\s,>?|-]*(?:\b\d{4,6}(?:-\d{4})?\b"
    r"|\b\p{L}{1,2}\d[\p{L}\d]?\s?\d\p{L}{2}\b|\b\d{3}\s\d{2}\b|\b\p{L}\d\p{L}\s?\d\p{L}\d\b)"
)
UNIT_AFTER = rf"^[\s,>?|-]*(?:{_UNIT})"
ADDRESS_NEAR = (
    r"\b(?:address(?:es)?|lives?\s+(?:at|on|in)|living\s+(?:at|on)|resid(?:es?|ing|ence|ent)|mail(?:ing)?|shipping"
    r"|shipped\s+to|deliver(?:y|ed)?\s+to"
    r"|sen[dt]\s+to|moved\s+to|billing|apartment|pick\s+(?:me|us)\s+up|my\s+(?:place|house|home)|letter\s+arrived"
    r"|taxi\s+to|(?:we|i|let's|we'll|i'll|please)\s+(?:can\s+|will\s+|shall\s+|could\s+)?meet(?:\s+\p{L}+){0,3}\s+at"
    r"|meet\s+(?:me|us|you|him|her)(?:\s+\p{L}+){0,3}\s+at)\b"
)
# A line below a name or a firm, with the town after it: the address in a letterhead or a signature.
LETTERHEAD_AFTER = r"^(?:,\s*\p{Lu}[\p{L}'’. -]{1,40}){1,3},?\s*(?:\n|$)"
PHONE_CANDIDATE = r"(?:\+|\b00)?\(?\d[\d().\s/-]{5,22}\d(?:\s?(?:x|ext\.?|extension)\s?\d{1,6})?"
PHONE_NEAR = (
    r"\b(?:phone|telephone|tel|mobile|cell(?:phone)?|call(?:ed|ing)?|fax|whatsapp|text(?:ing)?|sms|dial|reach|contact"
    r"|desk"
    r"|messages?\s+to|registered|hotline|answering\s+at)\b"
)
PHONE_AFTER = r"^[\s:,()-]*(?:office|fax|mobile|cell|home|work|desk|phone)\b"
CARD_CANDIDATE = r"\b\d(?:[ -]?\d){11,18}\b"
CARD_NEAR = r"\b(?:credit|debit|card|visa|master\s?card|amex|american\s+express|discover|cc|maestro|diners|jcb)\b"
IBAN_CANDIDATE = r"\b\p{L}{2}\d{2}(?:[ -]?[\p{L}\d]{4}){2,7}(?:[ -]?[\p{L}\d]{1,3})?\b"
IP_CANDIDATE = r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}"
_TITLE = r"(?i:(?:mr|mrs|ms|miss|dr|prof)\.?\s+)?"
NAME = r"(\p{Lu}[\p{L}'’-]*\.?(?:\s(?:(?:de|da|van|von|der|bin|al|el|la)\s)?\p{Lu}[\p{L}'’-]*\.?){0,3})"
_KIN_NAMED = rf"\bmy\s+(?:\p{{L}}+\s+)?{_KIN}'?s?"
# Cues after which a capitalised word is a person's name, whatever the model finds …
NAMED = (
    rf"(?i:\b(?:my|your|our)\s+(?:(?:first|last|full|legal|middle|real)\s+)?name(?:\s+is|'s|:|\s*\?)\s*(?:(?:user"
    rf"|customer|client)\s*:\s*)?"
    rf"|\b(?:maiden|sur|last|first|full|user|customer|patient|employee|client|account)\s?name\s*(?:is|:|=|\?)\s*|(?:^"
    rf"|\n)[>\s?|-]*name\s*[:=]\s*"
    rf"|\bname\s+on\s+the\s+(?:account|card)\s*\??\s*(?:(?:user|customer|client)\s*:)?\s*|\b(?:calls?|called)\s+me\s+"
    rf"|\b(?:my|the)\s+name\b[^\n]{{0,90}}?\b(?:correct|change|update)\s+(?:it|this|that)\s+to\s+"
    rf"|{_KIN_NAMED}\s+name(?:\s+is)?\s+"
    rf"|\bname\s+in\s+the\s+account\b[^.\n]{{0,40}}\bto\s+"
    rf"|\bgreat\s+grand(?:father|mother)\s+was\s+called\s+){_TITLE}{NAME}"
)
# A person who is given a role in someone's affairs.
APPOINTED = (
    rf"\b(?:[Aa]dd|[Nn]ame|[Ll]ist|[Rr]egister|[Nn]ominate|[Aa]ppoint|[Rr]emove)\s+{_TITLE}{NAME}\s+"
    r"(?i:as\s+(?:an?\s+|the\s+|my\s+|our\s+|his\s+|her\s+)?(?:\p{L}+\s+)?"
    r"(?:beneficiary|guardian|dependant|dependent|executor|trustee|emergency|contact|owner|holder|user"
    r"|heir|nominee|signatory))\b"
)
# … and cues after which the model must find a person.
INTRODUCED = (
    rf"(?i:\bi\s+am\s+|\bi'm\s+|\bhello,?\s+this\s+is\s+|\bdear\s+|\bsigned:?\s+|\bregards,?\s+|\bsincerely,?\s+"
    rf"|\b(?:add|remove)\s+my\s+\p{{L}}+\s+"
    rf"|\b(?:patient|employee|customer|client|applicant|tenant|cardholder|account\s*holder|beneficiary|guardian"
    rf"|insured|claimant)s?,?:?\s+"
    rf"|{_KIN_NAMED},?\s+(?:is\s+)?(?:called\s+)?){_TITLE}{NAME}"
)

"""The verbs and nouns that tie a sensitive word to a person, by the word's class (``pii.lexicon``)."""

from interlock.dpe.pii.persons import ROLES
from interlock.dpe.text.wordlists import word_set

BEING = word_set("be become remain seem turn feel identify stay bear define describe get go appear know raise vote")
BEING_IN = word_set("in on of from with at under into through without off")
HAVING = word_set(
    "have get develop suffer battle fight survive contract catch live die recover undergo take receive need use carry manage beat "
    "struggle deal cope face experience inject wear lose overcome go enter attend start begin stop finish come hide "
    "conceal disclose reveal admit acknowledge relapse see require inherit endure bear keep swallow attempt collapse "
    "retire fall quit finish complete return seek want book request await inhale snort self-inject confess rely depend ail call "
    "share type stage"
)
# A person to whom this is done has the illness: the object of the verb, or its subject in the passive.
DONE_TO = word_set(
    "diagnose treat test prescribe put start admit hospitalise hospitalize find remove detect discover confirm rush refer "
    "screen operate section commit give inject dismiss leave force keep kill cost make take affect cause return "
    "discharge vaccinate register record list flag classify send excuse cure sign bring plague cripple haunt trouble "
    "isolate medicate deny refuse afflict infect hit strike run suspect certify bury fire sack reject transfer exempt"
)
HOLDING = {
    "creed": word_set("convert leave join practise practice follow embrace renounce adopt belong believe turn return abandon reject be raise quit profess observe attend"),
    "party": word_set("vote support join belong back lean sympathise sympathize favour favor be leave donate register quit follow admire elect hold have express"),
    "union": word_set("belong join pay be leave quit support organise organize elect enrol enroll"),
    "descent": word_set("be have come descend claim"),
    "people": word_set("come descend belong identify have be stem hail"),
    "intimate": word_set("have hide undergo start begin disclose reveal admit confess flee suffer survive experience be discuss persecute come reject"),
}  # fmt: skip
HOLDING["orientation"] = HOLDING["people"] | word_set("come out live flee")
HOLDING["faith"] = word_set(
    "raise bring convert turn become identify be belong attend join leave grow die live come describe have"
)
HOLDING["partisan"] = word_set("register vote identify be describe become run belong have")
CARRIERS = word_set(
    "diagnosis disease disorder disability attack test result treatment medication medicine therapy history condition status "
    "case symptom sign sufferer survivor victim patient surgery operation stage type form bout episode attempt infection gene "
    "mutation leave syndrome spectrum tablet pill drug injection pump dose course ward programme program problem failure "
    "issue trouble addiction allergy relapse scare struggle fight battle variant rehab blood "
    "member membership supporter voter activist sympathiser sympathizer follower adherent party meeting belief faith view conviction "
    "affiliation conversion background root origin descent ancestry heritage family minority parent parents "
    "convert believer practitioner community tribe identity orientation delegate official steward vote support "
    "injury cell pain level loss fracture variety number couple lot bit kind side period flare-up flare effect card"
)
# Whose patients, wards and drugs are somebody's by profession.
BY_PROFESSION = word_set(
    "patient ward unit drug case course surgery victim survivor sufferer community programme program battle fight"
)
# A file that says something says it of the person whose file it is.
FILES = word_set("file record chart history scan test result dossier biopsy bloodwork")
SAYING = word_set("mention show list note contain state record say document reveal indicate confirm include")
SUFFERERS = word_set("patient survivor victim sufferer")
CONGREGATIONS = word_set("church congregation mosque synagogue temple")
# Whose being something says that the person of whom it is has it: Ann's diagnosis is lupus.
FILED = word_set(
    "diagnosis condition illness disease disorder problem religion faith belief creed ethnicity origin orientation party affiliation view disability"
)
APT = word_set(
    "active allergic addicted positive registered enrolled ill sick hooked dependent hospitalised hospitalized involved open prone"
)
HUMAN = word_set(
    "man woman boy girl person child kid teenager guy lady lad nurse teacher baker worker cook driver mother father refugee convert believer family merchant"
)
HUMAN_ENDINGS = ("er", "or", "ist", "man", "woman", "ian", "ant", "eer", "ee", "person")
BEFORE_A_NAME = word_set("state faith orientation illness")
OTHERS = HUMAN | SUFFERERS | ROLES | word_set("people adult other")
PROFESSIONS = word_set("psychiatrist psychotherapist")
ALMOST = word_set("nearly almost practically virtually basically figuratively literally")
# After a word that is a manner of speaking then: a heart attack of laughter; deaf to advice, blind with rage.
LAUGHED_AT = (" of laughter", " of joy", " of luck", " of genius")
SENSES, SENSES_IDIOM = word_set("deaf blind"), (" to ", " with rage", " with love")
DOUBTED = word_set("if whether")

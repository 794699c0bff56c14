"""Sentences that make no factual claim in German, French and Spanish, which the English parser cannot tell (ATT-6).

Without a parse, words decide. A sentence is a courtesy when it has no figure and each of its words belongs to what people
say to each other in that language. A refusal, an offer or a question may name a topic after its fixed words, but no
figure, no but, and no clause that tells something.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern, spaced
from interlock.dpe.text.wordlists import word_set

_WORD = pattern(r"\p{L}+(?:['’]\p{L}+)*")
_SPLIT = pattern(r"['’]")


def _bare(text: str) -> str:
    """Return a text without accents, so that words end where ASCII says that they do."""
    letters = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(char for char in letters if not unicodedata.combining(char))


def _form(expression: str) -> Any:
    return spaced(_bare(expression), ignore_case=True)


@dataclass(frozen=True)
class Phrasing:
    """The words of courtesy of one language, and its forms of a refusal, an offer and a question with a topic."""

    courtesy: frozenset[str]
    marked: frozenset[str]
    """Words of courtesy of which at least one is needed, so that a few small words of another language are none."""
    declines: Any
    informs: Any
    """What a refusal must be about: telling, knowing, helping. A document that was not signed is none."""
    asks: Any
    offers: Any
    tells: Any
    """What makes a refusal, an offer or a question tell something: but, because, did you know that."""


GERMAN = Phrasing(
    courtesy=word_set(
        """
        aber alles also am an auch auf aus bei beim bereit bin bis bist bitte bitteschön brauche brauchen brauchst da dabei dafür dank danke
        dankeschön dann darf das dass dazu dein deine deinen dem den der des details dich die dies diese dieser dieses dir doch du ein
        eine einem einen einer einfach entschuldigen entschuldigung erklären er es etwas euch euer falls finden folgende folgenden frage
        fragen freue freut fröhlichen für geduld geschehen ganz geben geht gemacht gerade gern gerne genau gut gute guten guter gutes grüße grüß gott hab
        habe haben hallo hast hat helfen helfe herzlich herzliche herzlichen hier hilfe hilfreich hilft hoffe hoffentlich ich ihm ihn ihnen
        ihr ihre ihrem ihren ihrer im immer in informationen ist ja jederzeit kann kannst kein keine kein klar können könnten kommen konnte
        konnten leid leider lass lassen los machen mal mehr mein meine meinung nachricht anfrage nachfrage melden melde mich mir mit moin möchte möchten möchtest morgen nach
        nachfragen natürlich nein nicht noch nun nur ob oder okay ok prima problem richtig sagen schön schöne schönen schöner sehr sei sein
        selbstverständlich servus sich sie sind so sonst stehe stelle stellen super stets tag tage abend tschüss tun tut über um und uns
        unten unterstützen verfügung verstanden verstehe verständnis viel viele vielen von vor wann war warum was weiter weitere weiteren
        weiterhelfen welche welchen welches wenden wenn wer werden wie wiedersehen will willkommen wir wissen wo wochenende wünsche
        wünschen würde würden zeit zu zum zur zusammenfassung prüfung reise vorstellungsgespräch präsentation zögern überblick antwort erfolg glück spaß glückwunsch
        """
    ),
    marked=word_set(
        """
        dank danke dankeschön bitte hallo helfen helfe hilfe gern gerne entschuldigung leid leider tag morgen abend grüße geschehen willkommen fragen frage
        natürlich ja nein klar verstanden verstehe zusammenfassung wünsche glück erfolg wiedersehen tschüss servus moin selbstverständlich
        prima super genau richtig glückwunsch überblick verfügung antwort weiterhelfen freue freut wochenende
        """
    ),
    declines=_form(
        r"""
        \A(?:(?:leider|tut\s+mir\s+leid|es\s+tut\s+mir\s+leid|entschuldigung)[,:]?\s+(?:aber\s+)?)?
        (?: (?:dazu|darüber|hierzu|über\s[^,;]{1,80}|zu\s[^,;]{1,80})\s+(?:habe|kann|finde|konnte|liegen|gibt)\b[^;]{0,60}\b(?:nicht|kein\w*|nichts)\b
          | (?:ich|wir)\s+(?:habe|haben|kann|können|konnte|konnten|finde|weiß|darf|bin)\b[^,;]{0,60}\b(?:nicht|kein\w*|nichts)\b
          | (?:kann|habe|konnte)\s+ich\b[^,;]{0,60}\b(?:nicht|kein\w*|nichts)\b
          | (?:(?:in|aus)\s+)?(?:die|der|das|den|dem|diese\w*)\s+(?:\w+en\s+)?(?:quellen?|dokumente?n?|texte?n?|kontext|unterlagen|angaben|informationen|auszüge\w*|bericht|artikel)\b[^,;]{0,80}\b(?:nicht|kein\w*|nichts)\b
          | (?:das|dies)\s+(?:weiß|kann|finde)\s+ich\b[^,;]{0,30}\bnicht\b
          | (?:im|in\s+de[nmr]|in\s+diese[nmr])\s+(?:\w+en\s+)?(?:quellen?|dokumente?n?|text\w*|kontext|unterlagen|bericht|artikel)\b[^,;]{0,60}\b(?:nicht|nichts|kein\w*\s+(?:\w+\s+)?(?:angaben?|informationen|hinweise?|daten))\b
          | es\s+(?:gibt|liegen|steht|wird)\b[^,;]{0,60}\b(?:nicht|kein\w*|nichts)\b[^,;]{0,40}\b(?:information\w*|angaben?|hinweise?|daten|erwähnt|angegeben|genannt)\b
        )
        [^;]{0,160}\z
        """
    ),
    informs=_form(
        r"\b(?:sag(?:en|t)|nenn(?:en|t)|erwähn\w*|angegeben|genannt|beschr(?:eib|ieb)\w*|beantwort\w*|erklär\w*|verrät|verraten|geht\b.*\bhervor"
        r"|steht|informationen?|angaben?|hinweise?|auskunft|auskünfte|details|zugriff|zugang|helfen|weiterhelfen|gefunden|finde|finden|weiß"
        r"|bestätigen|sicher|beraten)\b"
    ),
    asks=_form(
        r"\A(?:und\s+)?(?:wie|was|wann|wo|wer|welche\w*|womit|worüber|möchte\w*|möchtest|kann|können|könnten|kannst|darf|soll|sollen|haben|hast"
        r"|brauchen|brauchst|wollen|willst|meinen|meinst|gibt|geht|ist|sind|suchen|suchst)\b[^;]{0,200}\?\z"
    ),
    offers=_form(
        r"\A(?:(?:gerne?|natürlich|klar|ja)[,!]?\s+)?(?:hier\s+(?:ist|sind|finden\s+sie)\s+(?:eine?|die|der|das|einige|ein\s+paar)\b[^,;.]{0,80}:"
        r"|(?:ich|wir)\s+(?:helfe|helfen|erkläre|zeige|fasse|kann|können)\b[^,;.]{0,20}\b(?:ihnen|dir|euch)\b[^,;.]{0,60}\b(?:helfen|erklären|zeigen"
        r"|weiterhelfen|unterstützen|mehr\s+(?:über|zu)\b[^,;.]{0,60}(?:sagen|erzählen)|zusammen)[.!]?)\z"
    ),
    tells=_form(
        r"\b(?:aber|sondern|jedoch|allerdings|weil|denn|obwohl)\b|\b(?:wussten|wusstest|wissen|weißt)\s+(?:sie|du|ihr)\b.*\bdass\b"
        r"|,\s*(?:dass|der|die|das|den|dem|deren|dessen)\b|\bdass\b"
    ),
)

FRENCH = Phrasing(
    courtesy=word_set(
        """
        a à accord ai aide aider aidera ainsi ajouter aller allez alors après as au aucun aucune aurevoir aussi autre autres avant avec avez
        avoir beaucoup besoin bien bienvenue bon bonjour bonne bonsoir bravo ça ce cela ces c c'est cet cette chose ci comme comment
        comprends compris continuation contacter d dans de demande demander des désolé désolée dessous détails dire disposition dites donc
        du elle en encore ensemble entendu est et êtes expliquer est-ce être excellent excellente excusez fait fois félicitations forte
        heureux heureuse hésite hésitez ici il ils inconvénient informations j je journée l la laisser laissez le les leur lors m mais
        merci même me mes mieux moi mon n ne nécessaire non nous nuit on ou où oui pardon parfait parler pas peu peux plaisir plaît plus
        pour pourrais pouvez pouvoir précision précisions préciser prie puis qu quand que quel quelle quelles quels quelque question
        questions qui quoi réponse rien s salut sais sera serai si souhaite soirée message patience retour intérêt sommes sont souci souhaitez soyez suis sûr résumé sur t te tes
        toi ton toujours tout toute toutes tous très tu un une utile va vais vas veuillez veux vos votre vous voici voilà volontiers
        voudriez voulez vraiment y problème chance courage week end
        """
    ),
    marked=word_set(
        """
        rien souhaite merci bonjour bonsoir salut bienvenue aide aider désolé désolée pardon excusez oui non volontiers plaisir question questions
        félicitations bravo hésitez hésite compris comprends entendu parfait voici voilà résumé accord prie plaît journée soirée disposition
        chance courage problème souci utile
        """
    ),
    declines=_form(
        r"""
        \A(?:(?:malheureusement|désolée?|je\s+suis\s+désolée?|pardon)[,:]?\s+(?:mais\s+)?)?
        (?: je\s+(?:ne|n['’])\s*\w+(?:\s+\w+){0,3}\s+(?:pas|aucune?|rien|plus)\b
          | (?:les|le|la|ces|ce|l['’])\s*(?:sources?|documents?|textes?|contexte|informations?|extraits?|article|rapport)\b[^,;]{0,30}\s(?:ne|n['’])\s*[^,;]{1,40}\b(?:pas|aucune?|rien)\b
          | aucune?\s+(?:information|source|document|donnée|mention|détail)s?\b[^;]{0,60}\b(?:n['’]|ne)\b
          | il\s+n['’]y\s+a\s+(?:pas|aucune?)\b[^,;]{0,30}\b(?:information|mention|donnée|détail|indication)s?\b
        )
        [^;]{0,160}\z
        """
    ),
    informs=_form(
        r"\b(?:di(?:t|sent|re)|mentionn\w*|précis\w*|indiqu\w*|parl\w*|révèl\w*|expliqu\w*|informations?|renseignements?|données|détails?"
        r"|mention|indications?|accès|aider|répondre|trouv\w*|sais|savoir|connais|confirmer|sûre?|conseils?)\b"
    ),
    asks=_form(
        r"\A(?:et\s+)?(?:est-ce\s+qu|qu['’]est-ce|comment|quand|où|qui|que|quoi|quel\w*|combien|voulez|souhaitez|voudriez|puis-je|peux|pouvez"
        r"|pourriez|avez|as-tu|veux|dois-je|désirez|en\s+quoi|de\s+quoi|sur\s+quoi)\b[^;]{0,200}\?\z"
    ),
    offers=_form(
        r"\A(?:(?:bien\s+sûr|volontiers|oui|d['’]accord)\s*[,!]?\s+)?(?:voici\s+(?:une?|le|la|les|quelques|l['’])\s*[^,;.]{0,80}:"
        r"|je\s+(?:peux|vais|serais\s+ravie?\s+de)\s+(?:vous|t['’]|te)\s*(?:aider|expliquer|montrer|en\s+dire\s+plus)\b[^,;.]{0,60}[.!]?)\z"
    ),
    tells=_form(
        r"\b(?:mais|car|parce|puisque|cependant|toutefois|bien\s+que)\b|\b(?:saviez|savez|sais)-?\s?(?:vous|tu)\s+qu|,\s*(?:qui|que|dont|où)\b"
        r"|\b(?:dire|dit|disent|savoir|confirmer)\s+qu(?:e\s|['’])"
    ),
)

SPANISH = Phrasing(
    courtesy=word_set(
        """
        a acuerdo adelante además adiós ahora al algo algún alguna algunas ante aquí así ayuda ayudar ayudarle ayudarte ayudarlo ayudo bien
        bienvenida bienvenido buen buena buenas bueno buenos cada caso claro como cómo comprendo con consulta contento contacto continuación
        correcto cualquier cuando cuándo cuál cuáles de decir decirme déjame del después desea deseo desear día días dime disculpa disculpas
        disculpe disposición donde dónde dudas dude dudes el ella en encantado encantada entendido entiendo eres es esa ese eso espero esta
        está estamos estar este esto estoy excelente explicar explico favor felicidades fin fue genial gracias gran gusto ha haber hacer
        hacerlo hasta hay he hola hoy igualmente indique indícame información la las le les listo lo los luego mañana más me mejor mi mis
        momento mucha muchas mucho muchísimas muy nada necesita necesitas necesite necesites ni no noche noches nos o ok otra otras otro
        otros para pena perdón perdona perfecto permíteme permítame pero placer poder podría podrías por posible pregunta preguntar
        preguntas pronto puede puedes puedo que qué quién quiere quieres quisiera resumen respuesta sea seguro semana señor ser si sí
        siempre siento sobre son soy su supuesto sus también tal tarde tardes te ti tiempo tiene tienes todo todos tu tus tú un una usted
        útil vale vamos vea ver verdad vez y ya yo suerte ánimo problema tengas tenga tengan paciencia mensaje comentario interés buena
        """
    ),
    marked=word_set(
        """
        nada día noche fin gracias hola adiós ayuda ayudar ayudarle ayudarte ayudo disculpa disculpe disculpas perdón siento buenas buenos bienvenido
        bienvenida claro supuesto perfecto entendido entiendo comprendo gusto placer pregunta preguntas dudas dude dudes felicidades
        resumen sí vale suerte ánimo genial excelente encantado encantada disposición acuerdo correcto listo problema útil
        """
    ),
    declines=_form(
        r"""
        \A(?:(?:lamentablemente|desafortunadamente|lo\s+siento|perdón|disculpe|disculpa)[,:]?\s+(?:pero\s+)?)?
        (?: no\s+(?:tengo|puedo|dispongo|encuentro|encontré|sé|me\s+es\s+posible|estoy\s+seguro|cuento)\b
          | (?:las?|los?|el|estas?|estos?)\s+(?:fuentes?|documentos?|textos?|contexto|informaci[oó]n|fragmentos?|artículo|informe)\b[^,;]{0,30}\bno\s+\w+
          | no\s+se\s+(?:menciona|indica|especifica|dice)\b
          | no\s+(?:hay|existen?)\s+(?:\w+\s+)?(?:informaci[oó]n|datos|detalles?|menci[oó]n|indicaci[oó]n(?:es)?|referencias?)\b
          | ning[uú]na?\s+(?:fuente|documento|informaci[oó]n|texto|dato)\b
        )
        [^;]{0,160}\z
        """
    ),
    informs=_form(
        r"\b(?:dicen?|decir|mencionan?|indican?|especifican?|hablan?|revelan?|explican?|aclaran?|detallan?|informaci[oó]n|datos?|detalles?"
        r"|menci[oó]n|acceso|ayudar\w*|responder|encuentro|encontr\w+|sé|saber|confirmar|segur[oa]|consejos?)\b"
    ),
    asks=_form(r"\A¿[^;¿]{1,200}\?\z"),
    offers=_form(
        r"\A(?:(?:claro|por\s+supuesto|sí|vale)[,!]?\s+)?(?:aquí\s+(?:tiene|tienes|está|están|va)\s+[^,;.]{0,80}:"
        r"|(?:puedo|voy\s+a|permítame|déjame)\s+(?:ayudarle|ayudarte|explicarle|explicarte|mostrarle|mostrarte)\b[^,;.]{0,60}[.!]?)\z"
    ),
    tells=_form(
        r"\b(?:pero|sino|porque|aunque|ya\s+que|sin\s+embargo)\b|\b(?:sabía|sabías|sabe|sabes)\s+que\b|,\s*(?:que|quien|cuyo|cuya|donde)\b"
        r"|\b(?:decir|dice|dicen|confirmar|afirmar)\s+que\b|\bsi\b.{0,60}\by\s+(?:el|la)\b"
    ),
)

_LANGUAGES = (GERMAN, FRENCH, SPANISH)
_EXCUSE = _form(r"\A(?:leider|tut\s+mir\s+leid|désolée?|lo\s+siento|perdón)[,:]?\s+(?:aber|mais|pero)\s+")
_INVENTS = _form(r"\d|https?:|www\.|@|%|[€$£]")
_MOST_WORDS = 40


_DID_YOU_KNOW = _form(
    r"\b(?:wussten|wusstest|wissen|weißt)\s+(?:sie|du|ihr)\b.*\bdass\b|\b(?:saviez|savez|sais|savais)-?\s?(?:vous|tu)\s+qu"
    r"|\b(?:sabía|sabías|sabe|sabes|sabían)\s+que\b"
)


def tells_by_asking(sentence: str) -> bool:
    """Whether a question in German, French or Spanish tells what it asks to be known: did you know that."""
    return _DID_YOU_KNOW.search(_bare(sentence)) is not None


@remembered(bytes_a_character=0)
def makes_no_claim(sentence: str) -> bool:
    """Whether a sentence in German, French or Spanish makes no factual claim."""
    text = " ".join(sentence.split())
    words = _WORD.findall(text.lower())
    if not words or len(words) > _MOST_WORDS or _INVENTS.search(text):
        return False
    return any(_in_language(text, words, each) for each in _LANGUAGES)


def _in_language(text: str, words: list[str], phrasing: Phrasing) -> bool:
    parts = [part for word in words for part in ([word] if word in phrasing.courtesy else _SPLIT.split(word))]
    if all(part in phrasing.courtesy for part in parts):
        return any(part in phrasing.marked for part in parts) or (
            text.endswith("?") and phrasing.asks.match(_bare(text)) is not None
        )
    asked = _bare(text.lstrip("¡"))
    excuse = _EXCUSE.sub("", asked)
    if phrasing.tells.search(excuse):
        return False
    declined = phrasing.declines.match(asked) is not None and phrasing.informs.search(asked) is not None
    return declined or any(form.match(asked) for form in (phrasing.asks, phrasing.offers))

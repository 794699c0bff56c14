"""National, tax, health and travel identifiers: presidio's patterns on RE2, and its validators (SPEC-005 §13.2)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from presidio_analyzer import predefined_recognizers as predefined

from interlock.dpe.pii import patterns as shapes
from interlock.dpe.pii.recognizers import LinearRecognizer, has_near
from interlock.dpe.text.patterns import pattern


@dataclass(frozen=True)
class National:
    """An identifier with a presidio validator.

    ``near`` must match close to it, unless ``alone`` tells that its form cannot be anything else.
    """

    recognizer: Callable[[], Any]
    category: str
    near: str
    alone: bool = False
    expressions: tuple[str, ...] = ()


NATIONAL = (
    National(
        predefined.UsSsnRecognizer,
        shapes.DIRECT,
        r"social\s+security|\bssns?\b",
        expressions=(r"\b\d{3}[- .]\d{2}[- .]\d{4}\b", r"\b\d{9}\b"),
    ),
    National(predefined.UsItinRecognizer, shapes.DIRECT, r"\bitin\b|taxpayer|tax\s+id"),
    National(predefined.UsMbiRecognizer, shapes.DIRECT, r"medicare|\bmbi\b|beneficiary"),
    National(predefined.MedicalLicenseRecognizer, shapes.DIRECT, r"medical\s+licen[cs]e|\bdea\b|certificate"),
    National(
        predefined.CaSinRecognizer,
        shapes.DIRECT,
        r"social\s+insurance|\bsin\b",
        expressions=(r"\b\d{3}[ -]\d{3}[ -]\d{3}\b", r"\b\d{9}\b"),
    ),
    National(predefined.NhsRecognizer, shapes.DIRECT, r"\bnhs\b|national\s+health"),
    National(
        predefined.UkNinoRecognizer,
        shapes.DIRECT,
        r"national\s+insurance|\bnino?\b|\bni\s+number",
        alone=True,
        expressions=(r"\b[a-ceghj-pr-tw-z][a-ceghj-npr-tw-z]\s?\d{2}\s?\d{2}\s?\d{2}\s?[a-d]\b",),
    ),
    National(predefined.UkDrivingLicenceRecognizer, shapes.DIRECT, r"driv|licen[cs]e"),
    National(predefined.InAadhaarRecognizer, shapes.DIRECT, r"aadhaar|uidai"),
    National(
        predefined.InPanRecognizer,
        shapes.DIRECT,
        r"\bpan\b|permanent\s+account",
        expressions=(r"\b[a-z]{3}[abcfghljpt][a-z]\d{4}[a-z]\b",),
    ),
    National(predefined.SgFinRecognizer, shapes.DIRECT, r"\bnric\b|\bfin\b|identity"),
    National(predefined.AuTfnRecognizer, shapes.DIRECT, r"tax\s+file|\btfn\b"),
    National(predefined.AuMedicareRecognizer, shapes.DIRECT, r"medicare"),
    National(predefined.NgNinRecognizer, shapes.DIRECT, r"\bnin\b|national\s+identi"),
    National(predefined.ZaIdNumberRecognizer, shapes.DIRECT, r"\bid\s+(?:number|no)|identity"),
    National(predefined.DeTaxIdRecognizer, shapes.DIRECT, r"steuer|tax\s+id|\bidnr\b"),
    National(
        predefined.DeSocialSecurityRecognizer, shapes.DIRECT, r"sozialversicherung|rentenversicherung|social\s+security"
    ),
    National(predefined.DeIdCardRecognizer, shapes.DIRECT, r"ausweis|identity\s+card|id\s+card"),
    National(predefined.EsNifRecognizer, shapes.DIRECT, r"\bnif\b|\bdni\b|identi"),
    National(predefined.EsNieRecognizer, shapes.DIRECT, r"\bnie\b|identi", alone=True),
    National(predefined.FiPersonalIdentityCodeRecognizer, shapes.DIRECT, r"hetu|henkil|identity", alone=True),
    National(predefined.ItFiscalCodeRecognizer, shapes.DIRECT, r"codice\s+fiscale|fiscal\s+code", alone=True),
    National(
        predefined.KrRrnRecognizer,
        shapes.DIRECT,
        r"resident\s+registration|\brrn\b",
        expressions=(r"\b\d{6}-?[1-8]\d{6}\b",),
    ),
    National(predefined.PlPeselRecognizer, shapes.DIRECT, r"pesel"),
    National(predefined.SePersonnummerRecognizer, shapes.DIRECT, r"personnummer|personal\s+(?:identity\s+)?number"),
    National(predefined.ThTninRecognizer, shapes.DIRECT, r"thai|\bid\s+(?:card|number)|national\s+id"),
    National(predefined.TrNationalIdRecognizer, shapes.DIRECT, r"t\.?c\.?\s+kimlik|turkish|national\s+id"),
    National(predefined.CryptoRecognizer, shapes.FINANCIAL, r"wallet|bitcoin|\bbtc\b|crypto|address", alone=True),
)


class NationalRecognizer(LinearRecognizer):
    """Recognises an identifier by presidio's patterns and validator."""

    def __init__(self, national: National) -> None:
        """Compile presidio's patterns, or ours where presidio's are not linear."""
        self._source: Any = national.recognizer()
        super().__init__(self._source.supported_entities[0], national.category)
        expressions = national.expressions or tuple(each.regex for each in self._source.patterns)
        self._patterns = [pattern(each, ignore_case=True) for each in expressions]
        self._near = pattern(national.near, ignore_case=True)
        self._alone = national.alone

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield matches that pass presidio's validator and have a cue word next to them."""
        for each in self._patterns:
            for match in each.finditer(text):
                start, end = match.span()
                valid = self._is_valid(match.group())
                if valid is False:
                    continue
                near = has_near(self._near, text, start, end)
                if near or (self._alone and valid):
                    yield start, end, 0.97 if valid else 0.93

    def _is_valid(self, written: str) -> bool | None:
        """Return presidio's verdict, or ``None`` when it has none."""
        if self._source.invalidate_result(written):
            return False
        verdict = self._source.validate_result(written)
        return None if verdict is None else bool(verdict)

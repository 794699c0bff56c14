"""The settings of a process: the declared ones, what follows from several of them, and what must hold of them together."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, YamlConfigSettingsSource

from interlock.domain.policy.remedies import RemedyKind
from interlock.runtime.cores import usable_cores
from interlock.runtime.settings.pods import PodDeclarations
from interlock.runtime.settings.profile_files import DEFAULT, ProfileSource, profile_values
from interlock.runtime.settings.service_links import linked_ports


class Settings(PodDeclarations):
    """The settings of every Interlock process, complete and consistent."""

    @property
    def max_message_bytes(self) -> int:
        """Largest message between services: a report quotes facts and claims, so it may exceed the body behind it."""
        return self.max_body_bytes * 4

    @property
    def model_threads(self) -> int:
        """Threads of the embedded models: as set, else one for each core that the process may use."""
        return self.dpe_threads or min(64, usable_cores())

    @property
    def enabled_remedies(self) -> tuple[str, ...]:
        """The remedies that are switched on, by name."""
        if self._older_remediation == "full":
            return tuple(RemedyKind)
        return tuple(name for name in self.remedies.split(",") if name)

    @property
    def forbids_remedies(self) -> bool:
        """Whether there is no remedy at all, not even one that a policy names."""
        return self._older_remediation == "none"

    @property
    def _older_remediation(self) -> str | None:
        """The value of ``remediation`` where it counts."""
        return None if "remedies" in self.model_fields_set else self.remediation

    @model_validator(mode="after")
    def _complete(self) -> Self:
        missing = []
        if self.review_required and self.reviewers_file is None and not self.reviewers_by_rpc:
            missing.append(f"review_required{self._of_profile('review_required')} needs reviewers_file")
        if self.audit_anchor_required and self.audit_anchor is None:
            missing.append(f"audit_anchor_required{self._of_profile('audit_anchor_required')} needs audit_anchor")
        if self.report_uri_hosts and self.report_secret is None:
            missing.append("report_uri_hosts needs report_secret: a report that is not signed proves nothing")
        if missing:
            raise ValueError("; ".join(missing))
        return self

    def _of_profile(self, name: str) -> str:
        """Return whose demand a setting is, where the operator may not have made it."""
        return f" (of the profile {self.profile})" if name in profile_values(self.profile) else ""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment over the YAML file named by INTERLOCK_CONFIG_FILE over the profile over defaults.

        What Kubernetes makes of Services is no part of the environment.
        """
        del dotenv_settings, file_secret_settings
        if isinstance(env_settings, EnvSettingsSource):
            links = linked_ports(env_settings.env_vars)
            env_settings.env_vars = {name: env_settings.env_vars[name] for name in env_settings.env_vars.keys() - links}
        profile = ProfileSource(settings_cls, DEFAULT)
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls), profile

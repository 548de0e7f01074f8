"""Which requests a target takes: conditions on the request, in few words.

Each condition that is set must hold. In YAML they are fields of `conditions`; in the admin and wherever they are shown
they are one line, such as `min_prompt_tokens=8000 tenants=acme,globex tools=yes`.
"""

from typing import Any

import msgspec

from engines.modalities import MODALITIES


class Facts(msgspec.Struct, frozen=True):
    """What conditions look at. prompt: tokens, estimated. output: the max_tokens of each choice. project: tenant/slug.
    key: its public id. tier: what the client's x-headrace-tier says."""

    prompt: int = 0
    output: int = 0
    modalities: frozenset[str] = frozenset({"text"})
    tools: bool = False
    tenant: str = ""
    project: str = ""
    key: str = ""
    tier: str = ""


class BadConditions(ValueError):
    """Conditions that cannot be; the message says which."""


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """None, or nothing listed: any. modalities: all that it may have. Projects are tenant/slug, keys public ids."""

    min_prompt_tokens: int | None = None
    max_prompt_tokens: int | None = None
    min_output_tokens: int | None = None
    max_output_tokens: int | None = None
    modalities: tuple[str, ...] = ()
    tools: bool | None = None
    tenants: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()

    def failed(self, facts: Facts) -> str | None:
        """The condition that does not hold, in words; None where all do."""
        sizes = (("prompt_tokens", facts.prompt), ("output_tokens", facts.output))
        for what, value in sizes:
            least, most = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if least is not None and value < least:
                return f"min_{what}={least}: it has {value}"
            if most is not None and value > most:
                return f"max_{what}={most}: it has {value}"
        if self.modalities and (others := facts.modalities - set(self.modalities)):
            return f"modalities={','.join(self.modalities)}: it has {','.join(sorted(others))}"
        if self.tools is not None and self.tools != facts.tools:
            return f"tools={_word(self.tools)}"
        named = (("tenants", facts.tenant), ("projects", facts.project), ("keys", facts.key), ("tiers", facts.tier))
        for what, name in named:
            allowed = getattr(self, what)
            if allowed and name not in allowed:
                return f"{what}={','.join(allowed)}: it is {name or 'none'}"
        return None

    def as_dict(self) -> dict[str, Any]:
        """As YAML and the database have them."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def __str__(self) -> str:
        return " ".join(f"{name}={_shown(value)}" for name, value in self.as_dict().items())


def conditions(value: Any) -> Conditions:
    """From what YAML or the database hold. Raises BadConditions."""
    try:
        found = msgspec.convert(value, Conditions)
    except msgspec.ValidationError as error:
        raise BadConditions(str(error)) from error
    for what in ("prompt_tokens", "output_tokens"):
        least, most = getattr(found, f"min_{what}"), getattr(found, f"max_{what}")
        if min(least or 0, most or 0) < 0 or (least is not None and most is not None and least > most):
            raise BadConditions(f"no number of {what} is at least {least} and at most {most}")
    if unknown := set(found.modalities) - set(MODALITIES):
        raise BadConditions(f"there is no modality {min(unknown)}, only {', '.join(MODALITIES)}")
    if any("/" not in project for project in found.projects):
        raise BadConditions("a project is written tenant/project")
    return found


def read(line: str) -> Conditions:
    """From one line, as `str` writes it. Raises BadConditions."""
    given: dict[str, Any] = {}
    for word in line.split():
        name, is_there, value = word.partition("=")
        if not is_there or name not in Conditions.__struct_fields__:
            raise BadConditions(f'"{word}" is none of {", ".join(f"{each}=" for each in Conditions.__struct_fields__)}')
        given[name] = _value(name, value)
    return conditions(given)


def _value(name: str, text: str) -> Any:
    if name == "tools":
        if text not in {"yes", "no"}:
            raise BadConditions("tools is yes or no")
        return text == "yes"
    if name.startswith(("min_", "max_")):
        if not text.isdecimal():
            raise BadConditions(f"{name} is a number of tokens")
        return int(text)
    return [part for part in text.split(",") if part]


def _word(value: bool) -> str:
    return "yes" if value else "no"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return _word(value)
    return ",".join(value) if isinstance(value, list | tuple) else str(value)

"""Which of those who have applied is meant, and where ssh finds it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from ces_client.errors import bad_field
from ces_common.messages.membership import Applicant


def chosen(applicants: Sequence[Applicant], name: str, address: str | None) -> Applicant:
    """The one of this name, and from this address if one is named. Raises BadInput where that is none, or several."""
    of_name = [each for each in applicants if each.name == name]
    found = [each for each in of_name if address in (None, each.address)]
    if len(found) == 1:
        return found[0]
    if found:
        addresses = ", ".join(each.address for each in found)
        remedy = f"say which with --from: {addresses}"
        raise bad_field(f"{len(found)} devices have applied as {name}", "--from", "it is not said which one", remedy)
    if of_name:
        addresses = ", ".join(each.address for each in of_name)
        raise bad_field(f"No {name} has applied from {address}", "--from", "none did from there", f"it was {addresses}")
    names = sorted({each.name for each in applicants})
    remedy = f"these have: {', '.join(names)}" if names else "no device has (ces get applicants)"
    raise bad_field(f"No device has applied as {name}", "NAME", "none has under this name", remedy)


def destination(applicant: Applicant) -> str:
    """As ssh takes it. The address is the one that it applied from; user and port are what it claims. Raises BadInput
    where the manager has told no address."""
    try:
        found = ip_address(applicant.address)
    except ValueError:
        raise bad_field(
            f"{applicant.name} has applied from {applicant.address!r}",
            "USER@HOST",
            "that is no address to go to",
            "name the device as ssh reaches it",
        ) from None
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    host = f"[{found}]" if found.version == 6 else str(found)
    return f"ssh://{applicant.user}@{host}:{applicant.port}"

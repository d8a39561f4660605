"""What `schemathesis` is to leave out of the requests that it makes up."""

import unicodedata

import schemathesis


def is_kept(value) -> bool:
    """A number beyond 64 bits is refused wherever it stands, which a schema can say of no free value."""
    if isinstance(value, dict):
        return all(is_kept(item) for item in value.values())
    if isinstance(value, list):
        return all(is_kept(item) for item in value)
    return isinstance(value, bool) or not isinstance(value, (int, float)) or -(2**63) < value < 2**64


def is_seen(text) -> bool:
    """An input of nothing but blanks and invisible characters is blank, for which a pattern has no class."""
    return not isinstance(text, str) or any(unicodedata.category(one)[0] in "LNPS" for one in text)


@schemathesis.hook
def filter_body(_, body) -> bool:
    return is_kept(body) and is_seen(body.get("input") if isinstance(body, dict) else None)

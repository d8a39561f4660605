"""Verifies a Rulekeep bundle offline: python3 verify_bundle.py BUNDLE.json ORGANISATION_KEY KEY ...

Each KEY belongs to an operator who may have invited the governor, at least one, or to a witness, which must have
cosigned. Keys are in the text form of C2SP signed notes. Needs: pip install cryptography"""
import base64, hashlib, json, re, sys
from datetime import datetime
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def need(holds, otherwise):
    if not holds: raise ValueError(otherwise)
def b64(text):
    raw = base64.b64decode(text, validate=True)
    need(base64.b64encode(raw).decode() == text, "base 64 in another spelling")
    return raw
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def written(value): return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
def parsed(text):
    """JSON in which a number is a natural one and an object has each field once."""
    def once(pairs): need(len(dict(pairs)) == len(pairs), "a field that comes twice"); return dict(pairs)
    def natural(digits): need(digits.isdigit(), "another number than a natural one"); return int(digits)
    return json.loads(text, object_pairs_hook=once, parse_int=natural, parse_float=natural, parse_constant=natural)

def time(text): return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").isoformat(timespec="milliseconds") + "Z" == text
DIGITS, CONTROL = "0123456789abcdefghjkmnpqrstvwxyz", "\x00-\x1f\x7f-\x9f"
ID, DIGEST, HASH, NUMBER = f"[0-7][{DIGITS}]{{25}}", "sha256:[0-9a-f]{64}", "[A-Za-z0-9+/]{43}=", "(0|[1-9][0-9]{0,14})"
NAME = rf"[^\s+{CONTROL}]{{1,256}}"
LEAF = {"index": int, "leaf": str, "path": [HASH]}
ANCHOR = {"kind": "anchor", "governor": NAME, "note": str, "at": time}
PROOF = {"invitation": str, "operator": NAME, "operatorSignature": str, "invitationSignature": str, "governorSignature": str}
ENROL = {"kind": "enrol", "governor": NAME, "key": str, "groups": [str], "at": time, "proof": PROOF}
INVITATION = {"organisation": NAME, "key": str, "groups": [str], "uses": int, "expiresAt": time}
RECORD = {
    "id": "prf_" + ID, "entityId": rf"(?=.*\S)[^{CONTROL}]{{1,256}}", "intentId": "int_" + ID,
    "decision": "ALLOW|DENY|ESCALATE|DEGRADE", "reasoning": str, "resolves?": "prf_" + ID, "retryOf?": "prf_" + ID,
    "trustScore": int, "trustTier": "T[0-5]", "riskLevel": "LOW|MEDIUM|HIGH|CRITICAL", "timestamp": time,
    "hash": DIGEST, "previousHash": DIGEST, "evidenceHash": DIGEST}
BUNDLE = {"record": RECORD, "proof": str, "governorKey": str, "anchor": LEAF, "enrol": LEAF, "checkpoint": str}

def read(value, form, what="the bundle"):
    """The value, which must have a form: the fields of a dict (one with ? may lack), a type, a pattern or a check."""
    if type(form) is dict:
        required, known = {name for name in form if name[-1] != "?"}, {name.rstrip("?"): form[name] for name in form}
        need(type(value) is dict and required <= set(value) <= set(known), what + ": a field too many or too few")
        return {name: read(value[name], known[name], name) for name in known if name in value}
    if type(form) is list:
        need(type(value) is list, what + ": no list")
        return [read(one, form[0], what) for one in value]
    is_text = type(value) is str
    fits = type(value) is form if type(form) is type else is_text and (form(value) if callable(form) else re.fullmatch(form, value))
    need(fits, what + " in another form")
    return value

WEAK = {int.from_bytes(bytes.fromhex(half), "little") for half in (
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")}
def strong(point):  # a point of small order lets one signature fit many texts
    return int.from_bytes(point, "little") % 2**255 % (2**255 - 19) not in WEAK | {0, 1, 2**255 - 20}
def key_of(text, kind):
    """The name, the id and the bytes of a public key."""
    name, key_id, raw = (text.split("+", 2) + ["", ""])[:3]
    raw = b64(raw)
    is_named = re.fullmatch(NAME, name) and len(name.encode()) <= 256 and sha(name.encode(), b"\n", raw)[:4].hex() == key_id
    need(is_named and len(raw) == 33 and raw[0] == kind and strong(raw[1:]), "not a public key: " + text)
    return name, key_id, raw[1:]
def is_signed(text, key, signature):
    if len(signature) != 64 or not strong(signature[:32]): return False
    try: return Ed25519PublicKey.from_public_bytes(key).verify(signature, text.encode()) is None
    except Exception: return False

NOTE = re.compile(f"(({NAME})\n{NUMBER}\n({HASH})\n(?:[^\x00-\x1f]+\n)*)\n((?:\u2014 {NAME} \\S+\n){{1,64}})")
def opened(note, vkey, kind=1):
    """The size and root of a checkpoint, after verifying that it has signatures by this key."""
    name, key_id, key = key_of(vkey, kind)
    parts = NOTE.fullmatch(note)
    need(parts and len(note.encode()) <= 1 << 18, "not a checkpoint with signatures")
    text, origin, size, root, lines = parts.groups()
    signed = [(signer, b64(by)) for signer, by in (line[2:].split(" ") for line in lines[:-1].split("\n"))]
    need(all(len(by) > 4 and len(signer.encode()) <= 256 for signer, by in signed), "not a signature")
    by_key = [by[4:] for signer, by in signed if (signer, by[:4].hex()) == (name, key_id)]
    need(by_key, "not signed by " + name)
    for by in by_key:  # kind 4, a cosignature, has a time before the signature
        seconds = int.from_bytes(by[:8], "big") if kind == 4 else 0
        stated, by = (f"cosignature/v1\ntime {seconds}\n{text}", by[8:]) if kind == 4 else (text, by)
        need(is_signed(stated, key, by) and seconds < 1 << 63, "a forged signature of " + name)
    need((kind == 4 or origin == name) and int(size) <= 1 << 48, "a checkpoint of another log")
    return int(size), b64(root)

def included(leaf, index, path, size, root):  # RFC 9162, 2.1.3.2
    need(0 <= index < size, "an entry outside the log")
    last, found = size - 1, sha(b"\0", leaf)
    for step in map(b64, path):
        need(last > 0, "a wrong inclusion proof")
        from_left = index & 1 or index == last
        while from_left and not index & 1: index, last = index >> 1, last >> 1
        found, index, last = sha(b"\1", *((step, found) if from_left else (found, step))), index >> 1, last >> 1
    need(last == 0 and found == root, "an entry that is not in the log")
def leaf(part, form, log):
    included(part["leaf"].encode(), part["index"], part["path"], *log)
    value = read(parsed(part["leaf"]), form, form["kind"])
    need(written(value) == part["leaf"] and len(part["leaf"].encode()) < 1 << 16, "a leaf in another spelling")
    return value

def invited(enrol, organisation, operators):
    """Checks that an operator invited the governor to the organisation for these groups, and that it accepted."""
    proof, groups = enrol["proof"], enrol["groups"]
    named = [key for name, _, key in operators if name == proof["operator"]]
    text = "rulekeep fleet invitation\n" + proof["invitation"]
    need(any(is_signed(text, key, b64(proof["operatorSignature"])) for key in named), "an invitation that no operator signed")
    invitation = read(parsed(proof["invitation"]), INVITATION, "the invitation")
    need(written(invitation) == proof["invitation"], "an invitation in another spelling")
    need(invitation["organisation"] == organisation and invitation["uses"] < 1 << 32, "an invitation of another organisation")
    is_one = len(groups) == 1 and groups[0] in invitation["groups"]
    need(groups == invitation["groups"] or is_one, "other groups than the invitation's")
    text = f"rulekeep fleet enrolment\n{enrol['key']}\n{written(groups)}\n{proof['invitation']}"
    for key, by in ((enrol["key"], "governorSignature"), (invitation["key"], "invitationSignature")):
        need(is_signed(text, key_of(key, 1)[2], b64(proof[by])), "a forged enrolment")

def verify(bundle, organisation, operators, witnesses):
    bundle = read(bundle, BUNDLE)
    name, log = key_of(organisation, 1)[0], opened(bundle["checkpoint"], organisation)
    for witness in witnesses: opened(bundle["checkpoint"], witness, 4)
    anchor, enrol, record = leaf(bundle["anchor"], ANCHOR, log), leaf(bundle["enrol"], ENROL, log), bundle["record"]
    invited(enrol, name, [key_of(key, 1) for key in operators])
    key, governor = bundle["governorKey"], anchor["governor"]
    need((enrol["key"], enrol["governor"], key_of(key, 1)[0]) == (key, governor, governor), "a governor with another key")
    need(bundle["enrol"]["index"] < bundle["anchor"]["index"], "an anchor before the enrolment")
    head = re.match(f"c2sp[.]org/tlog-proof@v1\nindex {NUMBER}\n((?:{HASH}\n){{0,64}})\n", bundle["proof"])
    need(head and bundle["proof"][head.end():] == anchor["note"], "a proof in another checkpoint than the anchor's")
    place = 0
    for digit in record["id"][4:]: place = place << 5 | DIGITS.index(digit)
    need(place % (1 << 48) == int(head[1]) and record["trustScore"] <= 1000, "a record of another place")
    fields = sha(written({key: record[key] for key in sorted(record) if key != "hash"}).encode())
    need(record["hash"] == "sha256:" + fields.hex(), "a changed record")
    included(fields, int(head[1]), head[2].split(), *opened(anchor["note"], key))
    by = ", cosigned by " + ", ".join(key.split("+")[0] for key in witnesses) if witnesses else ""
    return f"{record['id']}: {record['decision']} by {governor}, anchored at {anchor['at']}, one of {log[0]} entries of {name}{by}"

def clean(text): return "".join(letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}" for letter in text)
try:
    need(len(sys.argv) > 3, "expected BUNDLE.json ORGANISATION_KEY KEY ...")
    file, organisation, *keys = sys.argv[1:]
    witnesses = [key for key in keys if b64(key.split("+", 2)[-1])[:1] == b"\4"]
    operators = [key for key in keys if key not in witnesses]
    print(clean(verify(parsed(open(file, "rb").read().decode()), organisation, operators, witnesses)))
except Exception as error: sys.exit(clean(f"refused: {error or type(error).__name__}"))

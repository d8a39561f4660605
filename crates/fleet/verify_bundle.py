"""Verifies a Rulekeep bundle offline: python3 verify_bundle.py BUNDLE.json ORGANISATION_KEY [WITNESS_KEY ...]

Keys are in the text form of C2SP signed notes. Each witness named must have cosigned. Needs: pip install cryptography"""
import base64, hashlib, json, sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def need(holds, otherwise):
    if not holds: raise ValueError(otherwise)
def b64(text):
    raw = base64.b64decode(text, validate=True)
    need(base64.b64encode(raw).decode() == text, "base 64 in another spelling")
    return raw
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()

def opened(note, vkey, kind):
    """The size and root of a checkpoint, after verifying that it has signatures by this key."""
    name, key_id, key = vkey.split("+", 2)
    key = b64(key)
    need(key[0] == kind and sha(name.encode(), b"\n", key)[:4].hex() == key_id, "not a key: " + vkey)
    text, lines = note[:note.rindex("\n\n") + 1], note[note.rindex("\n\n") + 2:]
    need(lines.endswith("\n"), "a note that is cut off")
    signed = [(dash, signer, b64(by)) for dash, signer, by in (line.split(" ") for line in lines[:-1].split("\n"))]
    by_key = [by[4:] for dash, signer, by in signed if (dash, signer, by[:4].hex()) == ("\u2014", name, key_id)]
    need(by_key, "not signed by " + name)
    for by in by_key:  # kind 4, a cosignature, has a time before the signature
        time = f"cosignature/v1\ntime {int.from_bytes(by[:8], 'big')}\n" if kind == 4 else ""
        Ed25519PublicKey.from_public_bytes(key[1:]).verify(by[8 if kind == 4 else 0:], (time + text).encode())
    origin, size, root = text.split("\n")[:3]
    need(kind == 4 or origin == name, "a checkpoint of another log")
    return int(size), b64(root)

def included(leaf, index, path, size, root):  # RFC 9162, 2.1.3.2
    need(0 <= index < size, "an entry outside the log")
    last, found = size - 1, sha(b"\0", leaf)
    for step in map(b64, path):
        need(last > 0 and len(step) == 32, "a wrong inclusion proof")
        from_left = index & 1 or index == last
        while from_left and not index & 1: index, last = index >> 1, last >> 1
        found, index, last = sha(b"\1", *((step, found) if from_left else (found, step))), index >> 1, last >> 1
    need(last == 0 and found == root, "an entry that is not in the log")

def verify(bundle, organisation, witnesses):
    size, root = opened(bundle["checkpoint"], organisation, 1)
    for witness in witnesses: opened(bundle["checkpoint"], witness, 4)
    for part in (bundle["anchor"], bundle["enrol"]): included(part["leaf"].encode(), part["index"], part["path"], size, root)
    anchor, enrol, record = json.loads(bundle["anchor"]["leaf"]), json.loads(bundle["enrol"]["leaf"]), bundle["record"]
    enrolled = ("anchor", "enrol", anchor["governor"], bundle["governorKey"])
    need((anchor["kind"], enrol["kind"], enrol["governor"], enrol["key"]) == enrolled, "a governor with another key")
    need(bundle["enrol"]["index"] < bundle["anchor"]["index"], "an anchor before the enrolment")
    version, index, *path = bundle["proof"].split("\n\n", 1)[0].split("\n")
    need((version, index[:6]) == ("c2sp.org/tlog-proof@v1", "index "), "not a proof")
    need(bundle["proof"].split("\n\n", 1)[1] == anchor["note"], "a proof in another checkpoint than the anchor's")
    fields = json.dumps({key: record[key] for key in sorted(record) if key != "hash"}, separators=(",", ":"), ensure_ascii=False)
    need("outcome" not in record and record["hash"] == "sha256:" + sha(fields.encode()).hex(), "a changed record")
    included(sha(fields.encode()), int(index[6:]), path, *opened(anchor["note"], bundle["governorKey"], 1))
    by = ", cosigned by " + ", ".join(key.split("+")[0] for key in witnesses) if witnesses else ""
    return f"{record['id']}: {record['decision']} by {anchor['governor']}, anchored at {anchor['at']}, one of {size} entries of {organisation.split('+')[0]}{by}"

try: print(verify(json.load(open(sys.argv[1], encoding="utf-8")), sys.argv[2], sys.argv[3:]))
except Exception as error: sys.exit(f"refused: {error or type(error).__name__}")

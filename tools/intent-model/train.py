#!/usr/bin/env python3
"""Trains the parser's table of words from the labeled rows in data/intents.

    tools/intent-model/train [--without AUTHOR] [--share SHARE] [--out FILE]

A clause is scored by the sum of a row of weights for each of its words, pairs of words and its head, over the square root of its
number of words. A conditional logit over the known capabilities (operation + resource + a bias for the pair, and "asks for nothing")
is fitted to the clauses; then the model itself assigns, twice, which clause of a longer request carries which label, and is fitted again
(multiple-instance learning: Dietterich et al. 1997). Base forms, WordNet's hypernyms and words of the same root are features in
training and are folded into each word's row, so that none is needed afterwards.
"""
import argparse, collections, functools, glob, hashlib, json, os, re, subprocess, sys
for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(k, "1")
import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.feature_extraction import DictVectorizer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(ROOT, "data", "intents")
sys.path.insert(0, HERE)
import wordnet as wn

OPERATIONS = "read write delete send execute transfer admin".split()
RESOURCES = (
    "information web file document email message social calendar contact customer account credential permission payment order "
    "booking database code task system network config device media analytics model health"
).split()
RISKS = dict(L=0, M=1, H=2, C=3)
RISK_NAMES = dict(LOW=0, MEDIUM=1, HIGH=2, CRITICAL=3)
COLUMNS = OPERATIONS + RESOURCES + ["none", "medium", "high", "critical"]
SPARSENESS = 0.02  # factor of the squared weights in the loss
HYPERNYMS = 0.2  # weight of a hypernym relative to the word itself
ROUNDS = 40  # steps of the optimizer; more would overfit the rows
RELATIVES = 0.4  # weight of a word of the same root relative to the word itself
REAL = 4.0  # weight of a real user's request relative to one written for this purpose
ASIDE = ("bazaar", "people", "kit", "quay", "shelf")  # confidence is fitted on rows of these authors, by a model trained without them
VALUES = {"emailaddress", "url", "filepath", "quotation", "codespan", "0", "$"}  # tokens that replace a value in a clause
LEAST_PAIRS = 2  # occurrences that a pair of words needs to be learned
PAIRS = 1.0  # weight of a pair of words relative to an unknown word
MOST_BYTES = 1_500_000


def rows_of(path):
    """The labeled rows of a file: text, capabilities (primary first), risk, other accepted primaries."""
    group, rows = None, []
    for line in open(path, encoding="utf8"):
        line = line.strip()
        opening = re.fullmatch(r"#([a-z]+:[a-z]+) ([LMHC])", line)
        if opening:
            group = ([opening[1]], RISKS[opening[2]], [])
        elif line:
            text, (capabilities, risk, accepted) = line, group
            if "||" in line:
                text, label = line.split("||", 1)
                label = label.strip().split("|")
                capabilities, risk = [c.strip() for c in label[0].split(",")], RISK_NAMES[label[1]]
                accepted = [c.strip() for c in label[2].split(",")] if len(label) > 2 and label[2] else []
            by = os.path.basename(path)[:-4]
            weight = REAL if by == "public" else 1.0
            rows.append(dict(text=text.strip(), capabilities=capabilities, risk=risk, accepted=accepted, by=by, weight=weight))
    return rows


def open_rows():
    """The training rows."""
    rows = [row for path in sorted(glob.glob(os.path.join(DATA, "open", "*.txt"))) for row in rows_of(path)]
    kept = 0
    for line in open(os.path.join(DATA, "bfcl-labelled.jsonl"), encoding="utf8"):
        row = json.loads(line)
        if row["capabilities"][0] == "information:read" and not row["group"].startswith("bfcl/multi"):
            kept += 1
            if kept % 4:  # most rows of that benchmark ask for facts; a quarter of these is enough
                continue
        rows.append(dict(text=row["text"], capabilities=row["capabilities"][:1], risk=None, accepted=[], by="bfcl", weight=0.5))
    return [row for row in rows if not row["capabilities"][0].startswith("unknown")]


def data_digest():
    """SHA-256 over the training data."""
    digest = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(DATA, "open", "*.txt"))) + [os.path.join(DATA, "bfcl-labelled.jsonl")]:
        digest.update(os.path.basename(path).encode() + b"\0" + open(path, "rb").read())
    return digest.hexdigest()


NO_VERBS = set(
    "be is are was were have has had do does did can may might must will shall would could should need want like let's let us as in "
    "on at no so well more most less even down up off out over still last least own same then there here back further just".split()
)


def verbs_of(rows):
    """Words that can begin a request: verbs that are not more likely nouns, and the first words of rows."""
    counts = {pos: wn.counts(pos) for pos in ("verb", "noun", "adj")}
    first = collections.Counter()
    for row in rows:
        opening = re.match(r"[a-z']+", row["text"].lower())
        if opening:
            first[opening[0]] += 1
    verbs = set()
    for word, (senses, tagged) in counts["verb"].items():
        noun, adjective = counts["noun"].get(word, (0, 0)), counts["adj"].get(word, (0, 0))
        likelier = tagged >= noun[1] and tagged >= adjective[1] and (tagged > 0 or senses >= noun[0] + adjective[0])
        if word.isalpha() and (likelier or first[word] >= 2):
            verbs.add(word)
    for word, count in first.items():
        if count >= 2 and wn.lemma(word, "verb") in verbs:
            verbs.add(word)
    return verbs - NO_VERBS


def cut(rows, verbs, work):
    """Adds to each row its clauses, as the parser splits them."""
    path = os.path.join(work, "verbs.txt")
    open(path, "w").write("\n".join(sorted(verbs)))
    lines = "\n".join(json.dumps(row["text"]) for row in rows)
    done = subprocess.run([os.environ["INTENT_MODEL"], "clauses", path], input=lines, capture_output=True, text=True, check=True)
    for row, line in zip(rows, done.stdout.splitlines(), strict=True):
        clauses = json.loads(line)
        row["clauses"] = [clause for clause in clauses if clause["stance"] == "asked"]


@functools.lru_cache(None)
def base(word):
    return wn.lemma(word, "verb") or wn.lemma(word, "noun") or word


@functools.lru_cache(None)
def of_word(word):
    """The features of a word: itself, its base form, its hypernyms."""
    found = collections.Counter({"u=" + word: 1.0, "s=" + base(word): 1.0})
    if len(word) > 2:
        for pos in ("noun", "verb"):
            for synset, weight in wn.hypernyms(word, pos):
                found[synset] += HYPERNYMS * weight
        for relative in wn.relatives(word):
            found["s=" + relative] += RELATIVES
    return found


@functools.lru_cache(None)
def of_head(word, is_verb):
    """The features of the verb that begins the request, or of the first word if there is none."""
    if not is_verb:
        return collections.Counter({"<" + word: 1.0, "<s=" + base(word): 1.0})
    found = collections.Counter({"^" + word: 1.0, "^s=" + base(word): 1.0})
    for synset, weight in wn.hypernyms(word, "verb"):
        found["^" + synset] += HYPERNYMS * weight
    return found


def features(words, head):
    count, found = max(1, len(words)) ** 0.5, collections.Counter()
    for word in words:
        for feature, weight in of_word(word).items():
            found[feature] += weight / count
    for pair in zip(words, words[1:]):
        found["b=" + " ".join(pair)] += 1 / count
    if words:
        for feature, weight in of_head(words[head or 0], head is not None).items():
            found[feature] += weight / count
    return found


class Logit:
    """The conditional logit over capabilities and "asks for nothing", with weights shared by operation and by resource."""

    def __init__(self, pairs):
        self.pairs, self.width = pairs, len(OPERATIONS) + len(RESOURCES) + 1
        self.sharing = np.zeros((self.width, len(pairs) + 1))
        for place, pair in enumerate(pairs):
            resource, operation = pair.split(":")
            self.sharing[OPERATIONS.index(operation), place] = 1
            self.sharing[len(OPERATIONS) + RESOURCES.index(resource), place] = 1
        self.sharing[-1, -1] = 1
        self.start = None

    def fit(self, X, labels, weights):
        n, d = X.shape
        X = X.astype(np.float32)
        XT, weights, labels, every, A = X.T.tocsr(), np.asarray(weights), np.asarray(labels), np.arange(n), self.sharing

        def loss(theta):
            W, bias = theta[: d * self.width].reshape(d, self.width), theta[d * self.width :]
            scores = (X @ W.astype(np.float32)).astype(np.float64) @ A + bias
            scores -= scores.max(1, keepdims=True)
            likely = np.exp(scores)
            total = likely.sum(1, keepdims=True)
            value = -(weights * (scores[every, labels] - np.log(total[:, 0]))).sum()
            value += SPARSENESS / 2 * (W**2).sum() + 0.05 * (bias**2).sum()
            likely /= total
            likely[every, labels] -= 1
            likely *= weights[:, None]
            slope = XT @ (likely @ A.T).astype(np.float32)
            return value, np.concatenate([(slope + SPARSENESS * W).ravel(), likely.sum(0) + 0.1 * bias])

        start = self.start if self.start is not None else np.zeros(d * self.width + len(self.pairs) + 1)
        self.start = minimize(loss, start, jac=True, method="L-BFGS-B", options=dict(maxiter=ROUNDS, maxcor=5)).x
        self.W, self.bias = self.start[: d * self.width].reshape(d, self.width), self.start[d * self.width :]

    def scores(self, X):
        return (X @ self.W) @ self.sharing + self.bias


def log_softmax(scores):
    scores = scores - scores.max(1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(1, keepdims=True))


class Model:
    """The fitted model: the logit, and a logistic regression for each risk level from MEDIUM up."""

    def fit(self, rows):
        self.pairs = sorted({row["capabilities"][0] for row in rows})
        place = {pair: at for at, pair in enumerate(self.pairs)}
        nothing = len(self.pairs)
        clauses, owner, of_row = [], [], collections.defaultdict(list)
        for at, row in enumerate(rows):
            for clause in row["clauses"]:
                of_row[at].append(len(clauses))
                clauses.append(features(clause["words"], clause["head"]))
                owner.append(at)
        several = [at for at in of_row if len(of_row[at]) > 1]
        whole = [features([w for c in rows[at]["clauses"] for w in c["words"]], None) for at in several]
        # A pair that occurs once adds nothing to its words.
        pairs = collections.Counter(name for found in clauses for name in found if name.startswith("b="))
        once = {name for name, count in pairs.items() if count < LEAST_PAIRS}
        self.names = DictVectorizer()
        X = self.names.fit_transform([{k: v for k, v in f.items() if k not in once} for f in clauses + whole]).tocsr()
        X, whole = X[: len(clauses)], X[len(clauses) :]
        primary = lambda at: place[rows[at]["capabilities"][0]]
        weight = lambda at: rows[at]["weight"]
        single = [at for at, row in enumerate(owner) if len(of_row[row]) == 1]
        chosen, labels, weights = list(single), [primary(owner[at]) for at in single], [weight(owner[at]) for at in single]
        risks = [(at, owner[at]) for at in single]
        of_whole = [primary(at) for at in several]
        self.logit = Logit(self.pairs)
        self.logit.fit(sp.vstack([X[chosen], whole]), labels + of_whole, weights + [0.5 * weight(at) for at in several])
        for _ in range(2):
            likely = log_softmax(self.logit.scores(X))
            more, risks = ([], [], []), risks[: len(single)]
            for at in several:
                free = set(of_row[at])
                for capability in (c for c in rows[at]["capabilities"] if c in place):
                    # A clause that already has another capability must fit much better.
                    best = max(of_row[at], key=lambda clause: likely[clause, place[capability]] - 3 * (clause not in free))
                    if best in free:
                        free.discard(best)
                        for values, value in zip(more, (best, place[capability], weight(at))):
                            values.append(value)
                        if capability == rows[at]["capabilities"][0]:
                            risks.append((best, at))
                for clause in sorted(free):
                    for values, value in zip(more, (clause, nothing, 0.5 * weight(at))):
                        values.append(value)
            self.logit.fit(
                sp.vstack([X[chosen + more[0]], whole]),
                labels + more[1] + of_whole,
                weights + more[2] + [0.3 * weight(at) for at in several],
            )
        self.fit_risk(X, [(clause, rows[at]) for clause, at in risks if rows[at]["risk"] is not None], place)
        return self

    def fit_risk(self, X, risks, place):
        own = sp.csr_matrix(
            (np.ones(len(risks)), (range(len(risks)), [place[row["capabilities"][0]] for _, row in risks])), (len(risks), len(place))
        )
        # The presence of an address, file or sum does not determine the risk.
        tells = np.array([0.0 if VALUES & set(name[2:].split(" ")) else 1.0 for name in self.names.get_feature_names_out()])
        X = sp.hstack([X[[clause for clause, _ in risks]] @ sp.diags(tells), own * 0.5]).tocsr()
        levels = np.array([row["risk"] for _, row in risks])
        self.risk_weights, self.risk_own, self.risk_intercepts = [], [], []
        for level in (1, 2, 3):
            fitted = LogisticRegression(C=10, max_iter=200, tol=1e-3).fit(X, levels >= level)
            self.risk_weights.append(fitted.coef_[0][: -len(place)])
            self.risk_own.append(0.5 * fitted.coef_[0][-len(place) :])
            self.risk_intercepts.append(float(fitted.intercept_[0]))
        self.risk_weights = np.array(self.risk_weights).T

    def table(self, words, verbs):
        """The rows of the table: each key's weights, with base forms and hypernyms folded in."""
        weights = {name: np.concatenate([self.logit.W[at], self.risk_weights[at]]) for name, at in self.names.vocabulary_.items()}
        zero = np.zeros(len(COLUMNS))

        def sum_of(features):
            found = zero
            for feature, weight in features.items():
                if feature in weights:
                    found = found + weight * weights[feature]
            return found

        keys = {}
        for word in words | {w for w in wn.words() if w.isalpha() and 2 < len(w) < 20}:
            keys[word] = sum_of(of_word(word))
        for word in verbs:
            keys["^" + word] = sum_of(of_head(word, True))
        for name in weights:
            if re.fullmatch(r"<[a-z$0?']+", name) and name[1:] in words:
                keys[name] = sum_of(of_head(name[1:], False))
        for name in weights:
            if name.startswith("b="):
                keys[name[2:]] = weights[name]
        return keys


def size(row):
    """The information in a row: its largest distance from the mean of its kind."""
    o, r = row[: len(OPERATIONS)], row[len(OPERATIONS) : len(OPERATIONS) + len(RESOURCES)]
    return max(np.abs(o - o.mean()).max(), np.abs(r - r.mean()).max(), 0.5 * np.abs(row[-4:]).max())


def kept(keys, rows):
    """The keys that fit into the table: every word and most pairs of the rows, then the most likely and informative others."""
    met, opened = collections.Counter(), collections.Counter()
    for row in rows:
        for clause in row["clauses"]:
            words = clause["words"]
            met.update(words)
            met.update(" ".join(pair) for pair in zip(words, words[1:]))
            opened["<" + words[0] if clause["head"] is None else "^" + words[clause["head"]]] += 1
    familiar = collections.Counter()
    for pos in ("noun", "verb"):
        for word, (senses, tagged) in wn.counts(pos).items():
            familiar[word] += senses + 2 * tagged

    def worth(key):
        if " " in key:
            return size(keys[key]) * np.log1p(met[key]) * PAIRS
        if key in met:
            return np.inf
        return size(keys[key]) * np.log1p(familiar[key.lstrip("^<")] + 20 * opened[key]) / 4

    # Words that can begin a request have a row as a head; the rows of the more common verbs are kept.
    order = sorted(keys, key=lambda key: (-worth(key), key))
    room = MOST_BYTES // (len(COLUMNS) + 8)  # some eight bytes a key go into the index
    return sorted(order[:room], key=lambda key: key.encode())


def calibration(model, rows):
    """The factor of scores, fitted by log loss on authors that the model was not trained on; and for a likelihood of 0, 0.1, ...
    1 of the best capability, the share of correct readings."""
    place = {pair: at for at, pair in enumerate(model.pairs)}
    single = [row for row in rows if len(row["clauses"]) == 1 and row["capabilities"][0] in place]
    S = model.logit.scores(model.names.transform([features(r["clauses"][0]["words"], r["clauses"][0]["head"]) for r in single]).tocsr())
    labels = np.array([place[row["capabilities"][0]] for row in single])
    every = np.arange(len(labels))
    sharp = float(min(np.arange(0.3, 1.5, 0.05), key=lambda k: -log_softmax(S * k)[every, labels].mean()))
    likely = np.exp(log_softmax(S * sharp))[:, :-1]
    best = likely.argmax(1)
    right = [model.pairs[at] in [row["capabilities"][0]] + row["accepted"] for at, row in zip(best, single)]
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(likely[every, best], right)
    return sharp, [round(float(share), 3) for share in fitted.predict(np.arange(11) / 10)]


def write(model, rows, verbs, calibrated, out, work):
    sharp, shares = calibrated
    seen = {word for row in rows for clause in row["clauses"] for word in clause["words"]}
    table = model.table(seen, verbs)
    names = kept(table, rows)
    W = np.array([table[name] for name in names])
    # Few weights are large. These are clipped, so that the others are stored more exactly.
    scale, risk_scale = np.quantile(np.abs(W[:, :-3]).max(1), 0.999) / 127, np.quantile(np.abs(W[:, -3:]).max(1), 0.999) / 127
    W[:, :-3] /= scale
    W[:, -3:] /= risk_scale
    header = dict(
        version=1, data=data_digest(), digest="", columns=COLUMNS, scale=scale, risk_scale=risk_scale, sharpness=sharp, shares=shares, keys=0,
        pairs=[
            dict(capability=pair, bias=model.logit.bias[at], risk=[own[at] for own in model.risk_own]) for at, pair in enumerate(model.pairs)
        ],
        none=model.logit.bias[-1], risk=model.risk_intercepts,
    )  # fmt: skip
    paths = [os.path.join(work, name) for name in ("header.json", "keys.txt", "rows.bin")]
    json.dump(header, open(paths[0], "w"))
    open(paths[1], "w", encoding="utf8").write("\n".join(names) + "\n")
    np.clip(np.round(W), -127, 127).astype(np.int8).tofile(paths[2])
    subprocess.run([os.environ["INTENT_MODEL"], "pack", *paths, out], check=True)
    print(f"{len(names)} of {len(table)} keys, {os.path.getsize(out):,} bytes, sharpness {sharp:.2f}: {out}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--without", action="append", default=[], help="leave out the rows of this author")
    arguments.add_argument("--share", type=float, default=1.0, help="learn from this share of the rows alone")
    arguments.add_argument("--out", default=os.path.join(ROOT, "src", "parse", "data", "intents.table"))
    given = arguments.parse_args()
    work = os.environ.get("INTENT_MODEL_WORK") or os.path.join(ROOT, "target", "intent-model")
    os.makedirs(work, exist_ok=True)
    rows = [row for row in open_rows() if row["by"] not in given.without]
    if given.share < 1:
        rows = [row for row in rows if int(hashlib.md5(row["text"].encode()).hexdigest()[:6], 16) / 0xFFFFFF < given.share]
    verbs = verbs_of(rows)
    cut(rows, verbs, work)
    rows = [row for row in rows if row["clauses"]]
    print(f"{len(rows)} rows, {len(verbs)} verbs")
    # Confidence is fitted on authors that the model was not trained on.
    authors = sorted({row["by"] for row in rows if row["by"] != "bfcl"})
    aside = set(ASIDE) & set(authors) or set(authors[:1])
    trial = Model().fit([row for row in rows if row["by"] not in aside])
    calibrated = calibration(trial, [row for row in rows if row["by"] in aside])
    write(Model().fit(rows), rows, verbs, calibrated, given.out, work)


if __name__ == "__main__":
    main()

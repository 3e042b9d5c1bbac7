"""Verdicts of changes over all settings, and the list of those that are undecided."""

import collections
import json
import pathlib
import re

from . import ROOT
from .changes import text_of
from .subjects import key, name_of


def late_texts(arguments, results):
    """The mutants that took too long and the settings with which they did, of those that no others
    decide."""
    late = {(name_of(result["key"]), number) for result in results
            for number in result.get("answer", {}).get("late", [])}
    made = {text_of(mutant) for result in results
            for mutant in result.get("answer", {}).get("mutants", [])}
    return sorted((text, name) for text, all_of_it in (arguments.texts or {}).items()
                  if text not in made
                  for subject, places in all_of_it for place in places
                  if ((name := name_of(key(subject, "faults", 0))), place.number) in late)


def changes_of(results):
    """Of each text of a mutant the one that stands for all of it, with its verdict.

    One that is caught does, unless others are undecided and with no settings all are caught. What
    no sizes of some settings come to, or what some of them refuse, says nothing where others do."""
    stands = {}
    left = {text_of(mutant) for mutant in undecided(results) if not mutant["elsewhere"]}
    order = ["unreached", "rejected", "equivalent", "undecided", "caught"]
    for result in results:
        for mutant in result.get("answer", {}).get("mutants", []):
            text = text_of(mutant)
            if text in left and mutant["verdict"] != "undecided":
                continue
            if text not in stands or order.index(mutant["verdict"]) > order.index(
                    stands[text]["verdict"]):
                stands[text] = mutant
    return stands


def undecided(results):
    """Those that are, with `elsewhere`: whether some settings catch all of the same text."""
    verdicts = collections.defaultdict(set)  # of each setting, made by one process or several
    for result in results:
        for mutant in result.get("answer", {}).get("mutants", []):
            verdicts[name_of(result["key"]), text_of(mutant)].add(mutant["verdict"])
    shown = {text for (_, text), all_of_it in verdicts.items() if all_of_it == {"caught"}}
    return [{**mutant, "elsewhere": text_of(mutant) in shown}
            for result in results for mutant in result.get("answer", {}).get("mutants", [])
            if mutant["verdict"] == "undecided"]


def unreached_texts(results):
    """Operations and mutants of a line to which no settings' sizes come, with some of those."""
    reached, unreached = set(), {}
    def note(is_reached, text, result):
        if is_reached:
            reached.add(text)
        else:
            unreached.setdefault(text, name_of(result["key"]))

    for result in results:
        answer = result.get("answer", {})
        for operation in answer.get("operations", []):
            place = operation["where"].rsplit("/", 1)[-1]
            note(operation["reached"], f"{operation['operation']} at {place}", result)
        for mutant in answer.get("mutants", []):
            note(mutant["verdict"] != "unreached", text_of(mutant), result)
    return {text: name for text, name in sorted(unreached.items()) if text not in reached}


LIST = ROOT / "tools/undecided.def"
UNDECIDED = """\
// Mutants of the library's kernels that are neither found nor told by a rule, as `scripts/prove
// faults --undecided` writes them: kind, file, operation and change, of which numbers are N.
"""


def in_list(mutant):
    """What the list has of it. tools/fault_table.cpp knows a mutant by the same."""
    file = re.sub(r":\d+$", "", mutant["where"]).rsplit("/", 1)[-1]
    return (mutant["kind"], file,
            *(re.sub(r"\d+", "N", mutant[key]) for key in ("operation", "change")))


def write_undecided(results, path):
    """Of all results, so that one that is found or gone leaves the list."""
    lines = {in_list(mutant) for result in results
             for mutant in result.get("answer", {}).get("mutants", [])
             if mutant["verdict"] == "undecided"}
    pathlib.Path(path).write_text(UNDECIDED + "".join(
        "{" + f"{kind}, " + ", ".join(json.dumps(word) for word in words) + "},\n"
        for kind, *words in sorted(lines)), encoding="utf-8")


def new_texts(results, path=LIST):
    """The undecided changes of which the list lacks a mutant."""
    entries = re.findall(r"^\{(.*)\},$", pathlib.Path(path).read_text(encoding="utf-8"), re.M)
    known = {tuple(json.loads(f"[{entry}]")) for entry in entries}
    return sorted({text_of(mutant) for mutant in undecided(results)
                   if not mutant["elsewhere"] and in_list(mutant) not in known})

"""Changes of lines: which kernels and settings have them, and with which they are made."""

import collections
import concurrent.futures
import hashlib
import json
import re
import subprocess

from .results import usual_of
from .subjects import CORES, key, name_of, named, words

SHARED_RUNS = 20  # what all mutants of a process share takes as long as so many of them
# Divisors that say how many heads stay in L2 show in small sizes where few do.
OF_DIVISORS, FEW_IN_L2 = "of kind 36 at", "less L2 than is measured"
Place = collections.namedtuple("Place", "number form")


def mutants_of(arguments, subject):
    """The places of the subject's mutants by what they change: kind, line and change.

    What has none since it does not compile is a failure, and the others are made all the same."""
    process = subprocess.run([arguments.tilewright, *words(subject, "--faults", "--list-mutants")],
                             capture_output=True, text=True, check=False)
    by_text = collections.defaultdict(list)
    if process.returncode != 0:
        arguments.refused.append(f"{subject.name} {' '.join(subject.settings)}: {process.stderr}")
        return by_text
    for mutant in json.loads(process.stdout):
        by_text[text_of(of_core(mutant, subject.target))].append(
            Place(mutant["number"], mutant["form"]))
    return by_text


def drawn(*what):
    """A number that follows from what it is of alone, so that all machines draw the same."""
    return hashlib.sha256(repr(what).encode()).digest()


def with_texts(arguments, subjects):
    """Of each text of a mutant, the subjects of the library that have it and its places there.

    They are in the order in which they are chosen."""
    subjects = [subject for subject in subjects if not subject.is_file]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        lists = list(pool.map(lambda subject: mutants_of(arguments, subject), subjects))
    having = collections.defaultdict(list)
    for subject, by_text in zip(subjects, lists):
        for text, places in by_text.items():
            places.sort(key=lambda place, text=text: drawn(text, place.number))
            having[text].append((subject, places))
    for text, all_of_it in having.items():
        if OF_DIVISORS in text:
            all_of_it = having[text] = where_few_stay(all_of_it)
        all_of_it.sort(key=lambda each, text=text: drawn(text, each[0].settings))
    return having


def where_few_stay(all_of_it):
    """Of each operation the subjects with little L2, where it has any."""
    having = {subject.name for subject, _ in all_of_it if FEW_IN_L2 in subject.cases}
    return [each for each in all_of_it
            if each[0].name not in having or FEW_IN_L2 in each[0].cases]


def without_line(text):
    return re.sub(r" at (\S+?):\d+", r" at \1", text)


def where_it_shows(having, before):
    """Of each text that other settings decided in another build than those that left it open, the
    subjects that decided it.

    Where some left it undecided these are the ones that caught all of it. Its line may be another
    now."""
    verdicts = collections.defaultdict(lambda: collections.defaultdict(set))
    for result in before:
        for mutant in result.get("answer", {}).get("mutants", []):
            text = without_line(text_of(mutant))
            verdicts[text][name_of(result["key"])].add(mutant["verdict"])
    shows = {}
    for text, all_of_it in having.items():
        known = verdicts.get(without_line(text), {})
        is_undecided = any("undecided" in own for own in known.values())
        decide = {name for name, own in known.items()
                  if own == {"caught"} or not (is_undecided or "unreached" in own)}
        shows[text] = [each for each in all_of_it
                       if name_of(key(each[0], "faults", 0)) in decide] or all_of_it
        if len(decide) == len(known):  # none left it open
            shows[text] = all_of_it
    return shows


def chosen_mutants(having, costs):
    """Of each subject the numbers of the mutants that are made.

    The subject that brings most for what it costs is taken again and again, until none brings
    anything: a process begins with runs that all of its mutants share."""
    of_subject = collections.defaultdict(list)
    for text, all_of_it in having.items():
        for subject, places in all_of_it:
            of_subject[named(subject)].append((text, places[0].number))
    usual, left = usual_of(costs), set(having)

    def gain(name):
        mutants = sum(text in left for text, _ in of_subject[name])
        return mutants / (costs.get(name, usual) * (SHARED_RUNS + mutants))

    gains = {name: gain(name) for name in sorted(of_subject)}
    chosen = {}
    while gains:
        best = max(gains, key=gains.get)
        now = gain(best)
        if now == 0:
            del gains[best]
        elif now < gains[best]:  # others have taken what it had; no gain ever grows
            gains[best] = now
        else:
            del gains[best]
            chosen[best] = sorted(number for text, number in of_subject[best] if text in left)
            left.difference_update(text for text, _ in of_subject[best])
    return chosen


def what_is_the_same(having, chosen):
    """Says what was taken as the same as what."""
    mutants = sum(len(places) for all_of_it in having.values() for _, places in all_of_it)
    made = sum(len(numbers) for numbers in chosen.values())
    settings = {named(subject) for all_of_it in having.values() for subject, _ in all_of_it}
    by_form = collections.defaultdict(set)  # the settings of each set of forms
    of_settings = collections.defaultdict(set)
    for all_of_it in having.values():
        for subject, places in all_of_it:
            of_settings[named(subject)].update(place.form for place in places)
    for name, forms in of_settings.items():
        by_form[frozenset(forms)].add(name)
    lines = [f"{mutants} mutants of {len(settings)} kernels and settings are {len(having)} changes "
             f"of lines; {made} mutants of {len(chosen)} settings stand for them"]
    for names in sorted(map(sorted, by_form.values())):
        if len(names) > 1:
            lines.append("the same machine form but for a name: " + "; ".join(
                " ".join([name, *settings]) for name, settings in names))
    return lines


def texts_of(arguments, subjects):
    """As with_texts, of which the answer is kept."""
    if arguments.texts is None:
        arguments.texts = {} if arguments.short else with_texts(arguments, subjects)
        arguments.of_files = set()
        for subject in subjects:
            if subject.is_file and subject.is_of_core and not arguments.short:
                arguments.of_files.update(mutants_of(arguments, subject))
    return arguments.texts


def of_other_operations_first(all_of_it, costs):
    """The cheapest subject of each operation and target, and then the others."""
    usual, seen, first, others = usual_of(costs), set(), [], []
    for each in sorted(all_of_it, key=lambda each: costs.get(named(each[0]), usual)):
        kind = (each[0].name, each[0].target)
        (others if kind in seen else first).append(each)
        seen.add(kind)
    return first + others


def text_of(mutant):
    """A mutant's kind, line and change, without the numbers of stages and registers, and without
    the name of its kernel: operations share code. Each core has one of its own."""
    place = mutant["where"].rsplit("/", 1)[-1]
    operation = re.sub(r" of \w+$", "", mutant["operation"])
    change = re.sub(r"\d+", "N", f"{operation} {mutant['change']}")
    on = f" on {mutant['core']}" if "core" in mutant else ""
    return f"the mutant {change} of kind {mutant['kind']} at {place}{on}"


def of_core(mutant, target):
    """The same that says of which core it is, if it is of one."""
    return {**mutant, "core": target} if target in CORES else mutant

"""Tasks of `printed`: settings whose PTX is executed, and random kernels."""

from .changes import texts_of
from .results import costs_of, usual_of
from .subjects import TARGETS, is_program, key, named, words

# To print a kernel and make PTX of it takes as long as so many operations of warps.
PRINTING = 1e6


def with_printed(subjects, costs, texts):
    """Those that have every case, and every text of a mutant, at the least cost; and all that have
    no case. The one with most that is still to be had for what it costs comes first."""
    usual = usual_of(costs)
    items = {named(subject): set(subject.own_cases) for subject in subjects}
    for text, all_of_it in texts.items():
        for subject, _ in all_of_it:
            if named(subject) in items:
                items[named(subject)].add(text)
    chosen = {named(subject) for subject in subjects if not subject.cases}
    left = set().union(*items.values()).difference(*(items[name] for name in chosen))
    while left:
        best = max(sorted(items), key=lambda name, left=left: len(items[name] & left)
                   / (PRINTING + costs.get(name, usual)))
        chosen.add(best)
        left -= items.pop(best)
    return [subject for subject in subjects if named(subject) in chosen]


def printed_tasks(arguments, subjects, results):
    # Of the others no PTX is executed.
    of_one_gpu = [subject for subject in subjects
                  if not is_program(subject) and not subject.over_ranks
                  and subject.target == TARGETS[0]]
    for subject in with_printed(of_one_gpu, costs_of(results), texts_of(arguments, subjects)):
        yield key(subject, "printed", 0), words(subject, "--printed")
    for first in range(0, arguments.random, 50):
        count = min(50, arguments.random - first)
        yield (["random kernels", f"seed {first}", "printed", first],
               ["fuzz", "--printed", "--json", "--count", str(count), "--seed", str(first)])

"""Tasks of `clean`: how many schedules each setting has, with values and without."""

import collections

from .results import costs_of, further_costs, leaves_no_order, stands_for_all, usual_of, with_values
from .subjects import is_program, key, name_of, named, words

CHUNK = 1000  # schedules of one process, which has one of each size at least
DEAR_CHUNK, OF_CHUNK = 250, 100_000_000  # where so many would take more operations
OF_FILE = 50  # the same of a file's only size
# With values of a configuration; its larger sizes have one schedule without.
VALUED_OPERATIONS = 1_000_000
NUMBERS = 2  # of multiprocessors, of each size of a program
LAUNCHES = 2


def wanted_schedules(arguments, kind, subjects, costs):
    """Of each of these configurations how many are enough.

    Each case of a plan has all of them, one with values of each of the settings that have it. What
    is left has the setting with the most such cases for what a schedule costs."""
    count, least = (arguments.valued, 1) if kind == "values" else (arguments.schedules, 0)
    wanted = {named(subject): least if subject.cases else count for subject in subjects}
    having, left = collections.defaultdict(set), {}
    for subject in subjects:
        for case in subject.own_cases:
            having[case].add(named(subject))
    for case, names in having.items():
        left[case] = count - sum(wanted[name] for name in names)
    cases = collections.defaultdict(set)
    for case in left:
        for name in having[case]:
            cases[name].add(case)
    usual = usual_of(costs)
    while (open_cases := {case for case in left if left[case] > 0}):
        def gain(name, now=open_cases):
            return len(cases[name] & now) / costs.get(name, usual)
        best = max(sorted(cases), key=gain)
        more = min(left[case] for case in cases[best] & open_cases)
        wanted[best] += more
        for case in cases[best]:
            left[case] -= more
    return wanted


def least_of_a_case(arguments, schedules):
    """The case that fewest schedules of its settings came to, and how many."""
    of_case = collections.Counter()
    for subject in arguments.all_subjects:
        for case in subject.own_cases:
            of_case[case] += schedules.get(name_of(key(subject, "control", 0)), 0)
    if not of_case:
        return None
    (name, _, case), count = min(of_case.items(), key=lambda item: item[1])
    return name, case, count


def clean_tasks(arguments, kind, subjects, wanted, begin=0, costs=()):
    """The first schedules of all come before the next ones of any, those from `begin` on. One
    stands for all of a size in which nothing depends on the order of the work. `costs` are of a
    schedule, as far as they are known."""
    common = ["--input-seed", "0", "--one-for-all",
              *(["--control-only"] if kind == "control"
                else ["--valued-operations", str(VALUED_OPERATIONS)])]
    for first in range(0, max((wanted[named(s)] for s in subjects), default=0), OF_FILE):
        for s in subjects:
            is_dear = named(s) in costs and costs[named(s)] * CHUNK > OF_CHUNK
            number = OF_FILE if is_program(s) else DEAR_CHUNK if is_dear else CHUNK
            if max(first, begin) >= wanted[named(s)] or first % number != 0:
                continue
            seed = max(first, begin)
            sizes = [] if is_program(s) else ["--shrunken"]  # else the recorded one alone
            yield (key(s, kind, seed),
                   words(s, *sizes, *common, "--launches",
                         # A core keeps nothing from one run to the next.
                         *(["1"] if s.is_of_core else [str(LAUNCHES), "--strict"]),
                         "--seed", str(seed), "--schedules",
                         str(min(first + number, wanted[named(s)]) - seed)))


def value_tasks(arguments, subjects, _):
    wanted = {named(s): 1 if s.cases else arguments.valued for s in subjects}
    # Those of several ranks take longest.
    first = sorted(subjects, key=lambda subject: not subject.over_ranks)
    return clean_tasks(arguments, "values", first, wanted)


def more_value_tasks(arguments, subjects, results):
    """What cases still want, of settings in which something depends on the order of the work."""
    done = {name_of(result["key"]) for result in results
            if result["key"][2] == "values" and stands_for_all(result)}

    def hangs(subject):
        return subject.cases and name_of(key(subject, "values", 0)) not in done

    wanted = wanted_schedules(arguments, "values", list(filter(hangs, arguments.all_subjects)),
                              costs_of(results))
    return clean_tasks(arguments, "values", list(filter(hangs, subjects)), wanted, begin=1)


def control_tasks(arguments, subjects, results):
    """Not of settings in all of whose sizes one schedule with values stands for all, unless an
    operation of several kernels has further numbers of multiprocessors."""
    done = {name_of(result["key"]) for result in results
            if result["key"][2] == "values" and leaves_no_order(result)}

    def hangs(subject):
        return name_of(key(subject, "values", 0)) not in done

    # Of what nothing hung on with values one schedule of each size is enough most times.
    costs = {name: NUMBERS * answer["operations"] / arguments.schedules
             for name, answer in with_values(results)}
    costs.update(further_costs(results))
    wanted = wanted_schedules(arguments, "control", list(filter(hangs, arguments.all_subjects)),
                              {name: max(cost, 1) for name, cost in costs.items()})
    # A run that is ended has most cases behind it.
    ordered = sorted(filter(hangs, subjects), key=lambda s: costs.get(named(s), float("inf")))
    return clean_tasks(arguments, "control", ordered, wanted, costs=costs)

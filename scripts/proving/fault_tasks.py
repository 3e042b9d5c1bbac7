"""Tasks of `faults`: each change once, and with further settings what that leaves open."""

import collections

from .changes import (
    SHARED_RUNS,
    chosen_mutants,
    drawn,
    of_other_operations_first,
    text_of,
    texts_of,
    what_is_the_same,
    where_it_shows,
)
from .results import costs_of
from .subjects import is_alone, is_program, key, name_of, named, words
from .verdicts import late_texts, undecided, unreached_texts

# Mutants of one process. Each begins with its kernel's runs without a change, which take as long as
# some twenty mutants. Fewer are dear ones, of so many operations of their schedules together. Of
# cores so many as take about so long, if each is run in all sizes, and no few: most are found in
# the smallest.
MUTANTS, FEW_MUTANTS, OF_MUTANTS, CORE_SECONDS = 100, 50, 60_000_000, 60
FILE_PARTS = 12  # of the mutants of a core's file
SHORT_PARTS = 16  # of the mutants of --short
# A change that the first setting leaves undecided is made with so many more, one after the other.
# One that it does not come to is made with as many as that, so many at a time, in so many places of
# each, and where no other setting has it, in other places of the first one. One that is not judged
# in time is made with so many more.
AGAIN_SETTINGS, FURTHER_SETTINGS, AT_ONCE, FURTHER_PLACES = 4, 12, 4, 4
LATE_SETTINGS = 2
# On cores runs are few and short. Others are made there in rounds, so that what one decides the
# next need not make: with so many settings more than made it before, in so many places of each.
FURTHER_ROUNDS = [(0, FURTHER_PLACES), (1, 1), (2, 2), (3, FURTHER_PLACES), (6, FURTHER_PLACES)]
PATIENT = "however long it takes:"


def fault_task(subject, which, *more):
    return key(subject, "faults", which), words(subject, "--faults", "--threads", "1", *more)


def task_of_numbers(subject, numbers):
    """Its key tells it from those of other mutants of the subject, as --only chooses them."""
    return fault_task(subject, key_of_numbers(numbers), "--mutants", ",".join(map(str, numbers)))


def key_of_numbers(numbers):
    return drawn(",".join(map(str, numbers))).hex()[:12]


def not_made(arguments, results):
    """What has no answer yet. Machines that share the work have to choose alike, whatever they have
    done."""
    if arguments.shard != "1/1":
        return arguments.texts
    of_faults = [result for result in results if result["key"][2] == "faults"]
    made = {text_of(mutant) for result in of_faults
            for mutant in result.get("answer", {}).get("mutants", [])}
    made.update(text for text, _ in late_texts(arguments, of_faults))
    return {text: having for text, having in arguments.texts.items() if text not in made}


def fault_tasks(arguments, subjects, results):
    texts_of(arguments, subjects)
    costs = {**costs_of(arguments.before), **costs_of(results)}
    having = where_it_shows(not_made(arguments, results), arguments.before)
    chosen = chosen_mutants(having, costs)
    arguments.same = what_is_the_same(arguments.texts, chosen)
    arguments.again = Again(arguments.texts, costs, results)
    yield from arguments.again.tasks(sorted(arguments.again.seen))

    def takes(subject):
        numbers = chosen.get(named(subject), [])
        return costs.get(named(subject), 1) * (SHARED_RUNS + min(len(numbers), MUTANTS))

    # Those that take longest come first.
    for subject in sorted(subjects, key=takes, reverse=True):
        if subject.is_file and subject.is_of_core:
            for part in range(FILE_PARTS):
                yield fault_task(subject, part, "--part", f"{part + 1}/{FILE_PARTS}")
        elif subject.is_file:
            if not (is_program(subject) and is_alone(subject)):
                yield fault_task(subject, 0)
        elif arguments.short:
            yield fault_task(subject, 0, "--part", f"1/{SHORT_PARTS}")
        else:
            yield from tasks_of_numbers(subject, chosen.get(named(subject), []), costs)


def tasks_of_numbers(subject, numbers, costs):
    cost = costs.get(named(subject), 1)
    count = (min(max(int(CORE_SECONDS / cost), 20), MUTANTS) if subject.is_of_core
             else min(max(int(OF_MUTANTS / cost), FEW_MUTANTS), MUTANTS))
    for first in range(0, len(numbers), count):
        yield task_of_numbers(subject, numbers[first:first + count])


class Again:
    """What a result leaves open is made with others of the settings that have it, but on cores."""

    def __init__(self, texts, costs, results):
        self.texts, self.costs = texts, costs
        self.of_number = {(name_of(key(subject, "faults", 0)), place.number): text
                          for text, all_of_it in texts.items()
                          for subject, places in all_of_it for place in places}
        self.tried = collections.defaultdict(set)  # the settings
        self.made = collections.defaultdict(set)  # of settings the mutants' numbers
        self.verdicts = collections.defaultdict(set)
        self.caught = set()  # with some settings all are
        self.seen = set()
        self.under_way = collections.Counter()
        self.of_task = {}
        for result in results:
            if result["key"][2] == "faults":
                self.note(result)

    def note(self, result):
        """What the result says; its texts."""
        name, verdicts = name_of(result["key"]), collections.defaultdict(set)
        for mutant in result.get("answer", {}).get("mutants", []):
            verdicts[text_of(mutant)].add(mutant["verdict"])
            self.made[name].add(mutant.get("number"))
        for number in result.get("answer", {}).get("late", []):
            verdicts[self.of_number.get((name, number), "")].update()
        for text, all_of_it in verdicts.items():
            self.tried[text].add(name)
            self.verdicts[text] |= all_of_it
        self.caught.update(text for text, all_of_it in verdicts.items() if all_of_it == {"caught"})
        self.seen.update(verdicts)
        return set(verdicts)

    def after(self, task_key, result, rest):
        """What is to be made now that the task has ended, but for what another one makes of it."""
        seen = self.note(result) if result else set()
        own = self.of_task.pop(tuple(task_key), collections.Counter())
        if rest:
            left = collections.Counter({text: n for text, n in own.items() if text not in seen})
            self.of_task[tuple(rest[0])] = left
            own = own - left
        self.under_way -= own
        return self.tasks(sorted(seen)) if result else []

    def wanted(self, text):
        """Of a text that is still open: with how many settings, how many at a time, in how many
        places of each."""
        verdicts, of_core = self.verdicts[text], self.texts[text][0][0].is_of_core
        if text in self.caught or of_core:
            return None
        if not verdicts:
            return LATE_SETTINGS, 1, 1
        if "undecided" in verdicts:
            return AGAIN_SETTINGS, 1, 1
        return (FURTHER_SETTINGS, AT_ONCE, FURTHER_PLACES) if verdicts == {"unreached"} else None

    def other_places(self, text, places):
        """Of the settings that have it, the first places that are not made yet."""
        left = [(subject, [place for place in own[:places] if place.number
                           not in self.made[name_of(key(subject, "faults", 0))]])
                for subject, own in self.texts[text]]
        return [(subject, own) for subject, own in left if own]

    def tasks(self, texts):
        numbers, by_name = collections.defaultdict(dict), {}
        for text in texts:
            if text not in self.texts or self.under_way[text] > 0 or not self.wanted(text):
                continue
            settings, at_once, places = self.wanted(text)
            others = [each for each in self.texts[text]
                      if name_of(key(each[0], "faults", 0)) not in self.tried[text]]
            if not others and self.verdicts[text] == {"unreached"}:
                others = self.other_places(text, places)
            count = min(at_once, settings + 1 - len(self.tried[text]))
            for subject, own in of_other_operations_first(others, self.costs)[:max(count, 0)]:
                by_name[named(subject)] = subject
                numbers[named(subject)].update({place.number: text for place in own[:places]})
                self.made[name_of(key(subject, "faults", 0))].update(
                    place.number for place in own[:places])
        made = []
        for name, texts_of_numbers in sorted(numbers.items()):
            for task in tasks_of_numbers(by_name[name], sorted(texts_of_numbers), self.costs):
                words = task[1]
                own = collections.Counter({
                    texts_of_numbers[int(number)]: 1
                    for number in words[words.index("--mutants") + 1].split(",")})
                self.of_task[tuple(task[0])] = own
                self.under_way += own
                made.append(task)
        return made


def patient_tasks(arguments, _, results):
    """What has no verdict yet, each with the settings that cost least and without a limit."""
    of_faults = [result for result in results if result["key"][2] == "faults"]
    costs = costs_of(results)
    for text in sorted({text for text, _ in late_texts(arguments, of_faults)}):
        subject, places = of_other_operations_first(arguments.texts[text], costs)[0]
        yield fault_task(subject, f"{PATIENT} {places[0].number}",
                         "--mutants", str(places[0].number))


def further_round(number):
    """On cores, what no chosen settings come to, or decide, with others that have it: one round."""
    def tasks(arguments, _, results):
        return further_of(arguments, results, number)
    tasks.__name__ = f"further_{number + 1}_tasks"
    return tasks


def further_of(arguments, results, number):
    of_faults = [result for result in results if result["key"][2] == "faults"]
    unreached = unreached_texts(of_faults)
    undecided_texts = ({text_of(m) for m in undecided(of_faults) if not m["elsewhere"]}
                       | {text for text, _ in late_texts(arguments, of_faults)})
    made, tried = collections.defaultdict(set), set()
    for result in of_faults:
        name = name_of(result["key"])
        for mutant in result.get("answer", {}).get("mutants", []):
            made[text_of(mutant)].add(name)
            tried.add((name, mutant.get("number")))
        tried.update((name, late) for late in result.get("answer", {}).get("late", []))
    numbers, by_name, costs = collections.defaultdict(set), {}, costs_of(results)
    for text, all_of_it in sorted(arguments.texts.items()):
        is_open = text in unreached or text in undecided_texts
        if not is_open or not all_of_it[0][0].is_of_core:
            continue
        ordered = of_other_operations_first(all_of_it, costs)
        new = [each for each in ordered
               if name_of(key(each[0], "faults", 0)) not in made[text]]
        settings, places = FURTHER_ROUNDS[number]
        having = [each for each in ordered if each not in new] + new[:settings]
        for subject, own in having:
            by_name[named(subject)] = subject
            name = name_of(key(subject, "faults", 0))
            numbers[named(subject)].update(place.number for place in own[:places]
                                           if (name, place.number) not in tried)
    for name, of_subject in sorted(numbers.items()):
        yield from tasks_of_numbers(by_name[name], sorted(of_subject), costs)


FURTHER_OF_CORES = [further_round(number) for number in range(len(FURTHER_ROUNDS))]

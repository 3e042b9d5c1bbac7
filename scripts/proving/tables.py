"""What is printed of all results, and whether all is as it must be."""

import collections
import re

from . import ROOT
from .clean_tasks import LAUNCHES, least_of_a_case
from .order import TASKS
from .results import leaves_no_order, schedules_of
from .subjects import name_of
from .verdicts import LIST, changes_of, late_texts, new_texts, undecided, unreached_texts

VERDICTS = ["rejected", "equivalent", "unreached", "undecided", "caught"]
COLUMNS = ["sites", "mutants", "changes", *VERDICTS, "right_class", "both_lines"]


def print_failures(results):
    # Whether undecided mutants are a failure depends on other settings too.
    failed = [r for r in results if r["status"] != 0 and "ended" not in r
              and not (r["status"] == 1 and "mutants" in r.get("answer", {}))]
    for result in failed:
        print(f"{name_of(result['key'])} ({result['key'][2]}): exit status {result['status']}")
        if "error" in result:
            print("  " + result["error"].strip().replace("\n", "\n  "))
        for fault in result.get("answer", {}).get("faults", []):
            print("  " + fault["message"].replace("\n", "\n  "))
    return not failed


def summarise_clean(arguments, results):
    rows = collections.defaultdict(collections.Counter)
    shapes = collections.defaultdict(set)
    for result in results:
        answer = result.get("answer")
        row = rows[name_of(result["key"])]
        row["seconds"] += result["seconds"]
        if answer is None:
            row["failed"] += 1
            continue
        row[result["key"][2]] += answer["schedules"]
        row["stands for all"] += leaves_no_order(result)
        if result["key"][2] == "control" or leaves_no_order(result):
            row["in order"] += schedules_of(result)
        row["operations"] += answer["operations"]
        row["faults"] += len(answer["faults"])
        row["wrong"] += not answer["ok"] and not answer["faults"]
        shapes[name_of(result["key"])].update(case["sizes"] for case in answer.get("cases", []))
    print(f"{'kernel':<58} {'schedules':>9} {'with values':>11} {'operations':>11} {'s':>7} "
          f"{'faults':>6} {'wrong':>6}  shapes")
    for name, row in sorted(rows.items()):
        print(f"{name:<58} {row['control']:>9} {row['values']:>11} {row['operations']:>11} "
              f"{row['seconds']:>7.1f} {row['faults'] + row['failed']:>6} {row['wrong']:>6}  "
              + "; ".join(sorted(shapes[name])))
    total = sum(rows.values(), collections.Counter())
    least = least_of_a_case(arguments, {name: row["in order"] for name, row in rows.items()})
    alone = sum(row["stands for all"] > 0 for row in rows.values())
    print(f"{len(rows)} configurations: {total['control']} schedules of {LAUNCHES} launches, "
          f"{total['values']} more with values, {total['operations']:.3g} operations of warps, "
          f"{total['seconds'] / 60:.0f} minutes of one core; "
          f"in {alone} configurations one schedule of each size stands for all; "
          f"{total['faults'] + total['failed']} false alarms, {total['wrong']} wrong results")
    if least:
        name, case, count = least
        print(f"of the cases of all plans {case!r} of {name} came to the fewest schedules: "
              + (f"{count}" if count < float("inf") else "one of each size stands for all"))


def summarise_faults(results):
    kinds, absent = collections.defaultdict(collections.Counter), {}
    told = collections.defaultdict(lambda: collections.defaultdict(list))
    for result in results:
        for kind in result.get("answer", {}).get("kinds", []):
            absent.setdefault(kind["number"], kind.get("absent", ""))
            kinds[kind["number"]]["name"] = kind["name"]
            for column in ("sites", "mutants"):
                kinds[kind["number"]][column] += kind.get(column, 0)
        for mutant in result.get("answer", {}).get("mutants", []):
            if "ended" in result:
                kinds[mutant["kind"]]["mutants"] += 1
            place = mutant["where"].rsplit("/", 1)[-1]
            text = f"{mutant['kind']:>2}  {place}  {mutant['operation']} {mutant['change']}"
            verdict = mutant["verdict"]
            if verdict == "caught" and mutant["right_class"] and mutant["both_lines"]:
                continue
            if verdict == "caught":
                verdict = "caught, but " + ("with one line alone" if mutant["right_class"]
                                            else f"as {mutant['fault']}")
            # The numbers in a reason are the kernel's.
            why = re.sub(r"\d+", "N", mutant.get("why", ""))
            told[verdict][(why if verdict != "rejected" else "", text)].append(result["key"])
    for mutant in changes_of(results).values():
        row = kinds[mutant["kind"]]
        row["changes"] += 1
        row[mutant["verdict"]] += 1
        if mutant["verdict"] == "caught":
            row["right_class"] += mutant["right_class"]
            row["both_lines"] += mutant["both_lines"]
    print(f"{'fault':<76} " + " ".join(f"{column.replace('_', ' '):>11}" for column in COLUMNS))
    total, apart = collections.Counter(), []
    for number, row in sorted(kinds.items()):
        name = f"{number:>2} {row.pop('name', '')}"
        if row["mutants"] == 0:
            print(f"{name:<76} {absent[number]}")
            continue
        if row["equivalent"] == row["changes"]:
            apart.append(f"not counted: {name}, of whose {row['mutants']} mutants none can show")
            continue
        total.update(row)
        print(f"{name:<76} " + " ".join(f"{row[column]:>11}" for column in COLUMNS))
    print(f"{'all':<76} " + " ".join(f"{total[column]:>11}" for column in COLUMNS))
    for line in apart:
        print(line)
    told_apart = total["caught"] + total["undecided"] + total["unreached"]
    names = {name_of(result["key"]) for result in results}
    minutes = sum(r["seconds"] for r in results) / 60
    print(f"{len(names)} kernels and settings, {minutes:.0f} minutes of one core: "
          f"{total['caught']} of {told_apart} changes of lines that are neither rejected nor "
          f"equivalent are caught, {total['unreached']} stand where no size comes, "
          f"{total['undecided']} are undecided, "
          f"{100 * total['undecided'] / max(told_apart, 1):.2f} % of them; of the caught "
          f"{total['right_class']} as what they are, {total['both_lines']} with both lines")
    left = undecided(results)
    print(f"{len(left)} mutants are undecided, of {total['mutants']} that were made; of "
          f"{sum(mutant['elsewhere'] for mutant in left)} of them there are settings with which "
          f"all such mutants of the line are caught")
    print_worst(results)
    print_sites(results)
    for text, name in (unreached := unreached_texts(results)).items():
        print(f"no settings come to {text}; with {name} no size does")
    told_first = ["unreached", "undecided"]
    for verdict in told_first + sorted(v for v in told if v.startswith("caught")):
        for (_, text), keys in sorted(told[verdict].items()):
            print(f"{verdict}: {text}, in {len(keys)}: "
                  + ", ".join(name_of(key) for key in keys[:3]) + (", ..." if keys[3:] else ""))
    reasons = collections.defaultdict(collections.Counter)
    for (why, text), keys in told["equivalent"].items():
        reasons[why][text.split("  ")[0].strip()] += len(keys)
    for why, by_kind in sorted(reasons.items(), key=lambda item: -sum(item[1].values())):
        which = ", ".join(f"{count} of kind {kind}" for kind, count in sorted(
            by_kind.items(), key=lambda item: int(item[0])))
        print(f"equivalent ({which}): {why}")
    return not unreached


def print_left(arguments, results):
    """How many changes there are; whether each has a verdict, if all of them are made here."""
    made = changes_of(results)
    known = arguments.of_files.union(arguments.texts or {}, made)
    left = known.difference(made)
    print(f"{len(known)} changes of lines in all, of which {len(left)} have no verdict")
    of_lines = collections.Counter(re.search(r" at (\S+)", text)[1] for text in left)
    for line, count in of_lines.most_common(20):
        print(f"no verdict yet: {count} at {line}")
    return not left or arguments.shard != "1/1" or arguments.short


def print_worst(results):
    """The kernels of which the smallest shares are caught as what they are, and with both lines."""
    counts = collections.defaultdict(collections.Counter)
    for result in results:
        for kind in result.get("answer", {}).get("kinds", []):
            counts[name_of(result["key"])].update(
                {column: kind.get(column, 0) for column in ("caught", "right_class", "both_lines")})
    for column in ("right_class", "both_lines"):
        shares = sorted((count[column] / count["caught"], name, count)
                        for name, count in counts.items() if count["caught"])
        print(f"least {column.replace('_', ' ')}: " + ", ".join(
            f"{name} {count[column]} of {count['caught']}" for _, name, count in shares[:3]))


def print_sites(results):
    """Sites of each kind, by the sort of kernel they stand in."""
    def sort_of(key):
        if key[0].endswith((".tw", ".twp")):
            return "examples"
        return key[0] + (" tile" if "schedule=tile" in key[1].split() else " explicit")

    sorts = sorted({sort_of(result["key"]) for result in results})
    sites = collections.defaultdict(collections.Counter)
    for result in results:
        for kind in result.get("answer", {}).get("kinds", []):
            sites[kind["number"]][sort_of(result["key"])] += kind.get("sites", 0)
    print("sites: " + "; ".join(f"({i + 1}) {sort}" for i, sort in enumerate(sorts)))
    print(f"{'kind':>6} " + " ".join(f"{f'({i + 1})':>7}" for i in range(len(sorts))))
    for number, row in sorted(sites.items()):
        print(f"{number:>6} " + " ".join(f"{row[sort]:>7}" for sort in sorts))


def summarise_printed(results):
    launches = sum(len(r.get("answer", {}).get("cases", [])) for r in results)
    random = sum(r.get("answer", {}).get("compared", 0) for r in results)
    different = [r for r in results if r["status"] != 0]
    for result in different:
        answer = result.get("answer", {})
        for case in answer.get("cases", []):
            if not case["agrees"]:
                print(f"{name_of(result['key'])}, {case['sizes']}: {case['kind']}, line "
                      f"{case['line']} of the PTX: {case['message']}")
        for failure in answer.get("failures", []):
            print(f"random kernel {failure['seed']}: {failure['difference']}")
    minutes = sum(r["seconds"] for r in results) / 60
    print(f"{len(results)} runs, {minutes:.0f} minutes of one core: "
          f"{launches} launches of the library's kernels and {random} random kernels; "
          f"{len(different)} runs differ from the machine form")


def summarise(arguments, results):
    """Whether all is as it must be."""
    ok = True
    by_kind = collections.defaultdict(list)
    for result in results:
        kind = result["key"][2]
        by_kind["clean" if kind in ("control", "values") else kind].append(result)
    for what in arguments.commands:
        if what not in TASKS:
            continue
        if len(arguments.commands) > 1:
            print(f"== {what}")
        ok = print_failures(by_kind[what]) and ok
        if what == "clean":
            summarise_clean(arguments, by_kind[what])
        elif what == "printed":
            summarise_printed(by_kind[what])
        else:
            for line in arguments.same:
                print(line)
            ok = summarise_faults(by_kind[what]) and ok
            ok = print_left(arguments, by_kind[what]) and ok
            for text in (new := new_texts(by_kind[what])):
                print(f"undecided, and not in {LIST.relative_to(ROOT)}: {text}")
            ok = ok and not new
            for text, name in late_texts(arguments, by_kind[what]):
                print(f"not judged in time: {text}, with {name}")
    for message in arguments.refused:
        print(message)
    return ok and not arguments.refused

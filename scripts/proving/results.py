"""Results of processes: what stands in their file, and what it says of costs and of orders."""

import json
import os

from .subjects import CORES, name_of


def results_of(path):
    """Those that stand in the file; the last line of a run that was ended may be cut."""
    results = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    results.append(json.loads(line))
                except ValueError:
                    continue
    return results


def usual_of(costs):
    """What is taken for the cost of what none is known of: it still runs, or had no time."""
    return max(costs.values(), default=1)


def with_values(results):
    """Each configuration with what `clean` has run of it with values."""
    return [((result["key"][0], tuple(result["key"][1].split())), result["answer"])
            for result in results
            if result["key"][2] == "values" and result.get("answer", {}).get("schedules")]


def costs_of(results):
    """Operations of warps of a schedule. Of a core, whose instructions are of all sizes, seconds of
    all sizes."""
    seconds = {name_of(result["key"]): result.get("seconds", 0) for result in results
               if result["key"][2] == "values"}
    return {name: max(seconds[" ".join([name[0], *name[1]])], 0.1)
            if answer.get("target") in CORES
            else max(answer["operations"], 1) / answer["schedules"]
            for name, answer in with_values(results)}


def further_costs(results):
    """The same of a schedule beyond the first of each size: small ones have most of these, as
    tools/schedules.cpp divides them."""
    costs = {}
    for name, answer in with_values(results):
        of_sizes = [max(case["operations"], 1) for case in answer.get("cases", [])
                    if not case.get("one_for_all") and not case.get("without_values")]
        if of_sizes:
            costs[name] = (sum(1 / each ** 3 for each in of_sizes)
                           / sum(1 / each ** 4 for each in of_sizes))
    return costs


def stands_for_all(result):
    """Whether one schedule of each size with values stands for all of that size."""
    cases = [case for case in result.get("answer", {}).get("cases", [])
             if not case.get("without_values")]
    return bool(cases) and all(case.get("one_for_all") for case in cases)


def leaves_no_order(result):
    """Whether it is all of `clean` for its configuration."""
    return stands_for_all(result) and not (result["key"][2] == "values"
                                           and "program" in result["answer"]
                                           and result["answer"].get("target") not in CORES)


def schedules_of(result):
    """How many were executed of the sizes of which one does not stand for all."""
    if stands_for_all(result):
        return float("inf")
    answer = result.get("answer", {})
    return sum(case.get("schedules", 0) for case in answer.get("cases", [])
               if not case.get("one_for_all")) or answer.get("schedules", 0)

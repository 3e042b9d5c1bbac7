"""Processes of the tool: tasks are run, each is one result, and what is late is ended."""

import collections
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

from .changes import drawn, of_core
from .fault_tasks import PATIENT, key_of_numbers
from .order import ORDER, Queue

# What a run gives back the next one takes again, and the system has not cleared it meanwhile.
KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
# Where the next one is not judged within so many seconds the process is ended, and another one
# makes those behind it: so many times what those before took, as their median, between two bounds.
# The first one has the runs without a change before it.
TIMES_MEDIAN, LEAST_SECONDS, MUTANT_SECONDS, BEGIN_SECONDS = 20, 45, 90, 240
Ended = collections.namedtuple("Ended", "status output errors seconds")


def patience(taken):
    """For how many seconds to wait for the next mutant behind those that took so long."""
    return min(max(TIMES_MEDIAN * statistics.median(taken), LEAST_SECONDS), MUTANT_SECONDS)


def executed(words, limit, judged=None):
    """The process with what it printed and its seconds of a core; its status is None where it takes
    longer, or where no line comes to the file `judged` any more.

    What the clock says of it depends on what else the machine does."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, stdout=output, stderr=errors,
                                   env={**os.environ, **KEEPS_MEMORY})
        is_over, is_late = threading.Event(), threading.Event()

        def watch():
            last = time.monotonic()
            end, patient, taken = last + limit, last + BEGIN_SECONDS, []
            while not is_over.wait(min(1, max(end - time.monotonic(), 0))):
                now = time.monotonic()
                lines = judged.read_bytes().count(b"\n") if judged and judged.exists() else 0
                if more := lines - len(taken):
                    taken += [(now - last) / more] * more
                    last, patient = now, now + patience(taken)
                if now >= end or (judged and now >= patient):
                    is_late.set()
                    process.kill()
                    return
        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        is_over.set()
        watcher.join()
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return Ended(None if is_late.is_set() else process.returncode, *texts,
                     usage.ru_utime + usage.ru_stime)


def of_judged(judged):
    """What a run of mutants that was ended has found."""
    mutants = []
    for line in judged.read_text(encoding="utf-8").splitlines() if judged.exists() else []:
        try:
            mutants.append(json.loads(line))
        except ValueError:  # the last one
            continue
    return mutants


def ended_run(task, judged, has_time):
    """The result of a run of mutants that was ended, and the task that makes the others.

    The first of these is left out, if it was that one that took too long."""
    key, words = task
    mutants, target = of_judged(judged), words[words.index("--target") + 1]
    at = words.index("--mutants") + 1 if "--mutants" in words else None
    result = {"key": key, "answer": {"mutants": mutants, "target": target},
              "ended": "too long" if has_time else "no time"}
    if at is None:  # all of a file's
        return (result if mutants and has_time else None), None
    numbers = words[at].split(",")
    # One thread judges them in their order.
    done = numbers[:len(mutants)]
    late, others = numbers[len(done):len(done) + 1], numbers[len(done) + 1:]
    result["key"] = [*key[:3], key_of_numbers(done + late if has_time else done)]
    if has_time:
        result["answer"]["late"] = list(map(int, late))
        if others:
            return result, ([*key[:3], key_of_numbers(others)],
                            [*words[:at], ",".join(others), *words[at + 1:]])
    return (result if mutants or has_time else None), None


def run(arguments, steps, subjects, done):
    """Does the steps' tasks; how many there were, and how many of them had no time."""
    part, parts = map(int, arguments.shard.split("/"))

    def tasks_of(step):
        known = [result["key"] for result in done]
        return [task for task in step(arguments, subjects, done)
                if int.from_bytes(drawn(task[0][:2])[:4], "big") % parts == part - 1
                and task[0] not in known]

    queue = Queue([step for step in ORDER if step in steps], tasks_of, done, arguments.before,
                  arguments.end)
    writing = threading.Lock()

    def one(step, task, judged):
        key, words = task
        left = arguments.end - time.monotonic()
        if left <= 0:
            return None, None
        if key[2] == "faults":
            words = [*words, "--judged", str(judged)]
        else:
            judged = None
        is_patient = str(key[3]).startswith(PATIENT)
        ended = executed([arguments.tilewright, *words], left, None if is_patient else judged)
        with writing:
            arguments.seconds_of[step.__name__.removesuffix("_tasks")] += ended.seconds
        result, more = {"key": key}, None
        if ended.status is not None:
            try:
                result["answer"] = json.loads(ended.output)
            except ValueError:
                result["error"] = (ended.output + ended.errors)[-2000:]
        elif judged and not is_patient:
            result, more = ended_run(task, judged, time.monotonic() < arguments.end)
        else:
            result = None
        if result is None:
            return None, None
        answer = result.get("answer", {})
        if "mutants" in answer:
            made = [of_core(mutant, answer.get("target", "")) for mutant in answer["mutants"]]
            if "--mutants" in words:
                chosen = words[words.index("--mutants") + 1].split(",")
                made = [{**mutant, "number": int(number)} for mutant, number in zip(made, chosen)]
            answer["mutants"] = made
        return {**result, "status": ended.status, "seconds": round(ended.seconds, 2)}, more

    def work(out, judged):
        while (task := queue.take()) is not None:
            result, more = None, []
            try:
                result, rest = one(task[0], task[1:], judged)
                judged.unlink(missing_ok=True)
                more = [rest] if rest else []
                if arguments.again and task[1][2] == "faults":
                    with writing:
                        more += arguments.again.after(task[1], result, rest)
                if result is not None:
                    with writing:
                        done.append(result)
                        print(json.dumps(result), file=out, flush=True)
                        if arguments.verbose:
                            print(f"{result['seconds']:8.1f} s  {' '.join(map(str, task[1]))}",
                                  flush=True)
            finally:
                queue.finish(task[0], result, more)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, \
            tempfile.TemporaryDirectory() as scratch, \
            open(arguments.out, "a", encoding="utf-8") as out:
        for future in [pool.submit(work, out, pathlib.Path(scratch, str(i)))
                       for i in range(arguments.jobs)]:
            future.result()
    return queue.asked, queue.missing

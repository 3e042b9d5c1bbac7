#!/usr/bin/env python3
"""What escapes the simulated GPU: every kernel that it calls clean, run on the GPU with delays.

    bench/gpu_escapes.py --tilewright build/release/bin/tilewright --out escapes
    bench/gpu_escapes.py --mutants 48 --sanitize 8 --seed 3
    bench/gpu_escapes.py --mutants-only 100 --mutant-seconds 110 --files kernels/fused_mlp.tw
    bench/gpu_escapes.py --target sm_90a        # simulates and assembles only; needs no GPU

Each kernel and schedule is one `tilewright stress` in a process of its own: simulated first, then
launched with sleeps before whatever synchronises, and held bit by bit against one without. With
--mutants, faults drawn over all kinds are seeded into some kernels, and a table says who noticed
them: the hardware, compute-sanitizer, the simulator.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

# Of kernels that have these options, beside their defaults.
VARIATIONS = [["causal=true"], ["dim=128"], ["dim=128", "causal=true"],
              ["causal=true", "window=100"], ["softcap=20"], ["sinks=true"]]
# What a kernel takes in place of such a value: a latent key has more elements than its value.
IN_PLACE = {("attention_paged_mla", "dim=128"): ["dim=192", "dim_v=128"]}

# What mutants are made of: small lengths are for compute-sanitizer, under which all is slow.
SUBJECTS = [
    ("gemm", ["schedule=128x128_a4"], ["m=400", "n=264", "k=264"]),
    ("gemm", ["schedule=48x64x128_t_split6"], ["m=100", "n=136", "k=1032"]),
    ("attention_forward", ["schedule=sm90", "causal=true"], ["queries=200", "keys=400"]),
    ("gemm", ["schedule=tile"], ["m=200", "n=264", "k=264"]),
]
SANITIZER_TOOLS = ["memcheck", "racecheck"]
# Of memcheck, and of racecheck: the errors and warnings that it displays.
SANITIZER_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
USAGE, UNAVAILABLE = 2, 3


def run_process(words, timeout):
    """(exit status, stdout, stderr); the status is None where it took longer."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # a GPU that is not given up holds the process
            out, err = "", ""
        return None, out, err


def parse(text):
    """The JSON that a command printed; compute-sanitizer writes lines around it."""
    begin, end = text.find("{"), text.rfind("}")
    try:
        return json.loads(text[begin:end + 1]) if begin >= 0 else None
    except ValueError:
        return None


def settings_words(settings):
    return [word for setting in settings for word in ("--set", setting)]


class Session:
    def __init__(self, arguments):
        self.arguments = arguments
        self.records = []

    def answer(self, *words):
        """The JSON that a command of Tilewright prints."""
        status, out, err = run_process([self.arguments.tilewright, *words, "--json"], 60)
        if status != 0:
            sys.exit(f"{self.arguments.tilewright} {' '.join(words)}: {err}")
        return json.loads(out)

    def stress(self, kernel, settings, *more):
        a = self.arguments
        return [a.tilewright, "stress", kernel, "--target", a.target, "--seed", str(a.seed),
                "--json", *settings_words(settings), *more]

    def record(self, **fields):
        self.records.append(fields)
        return fields

    def write(self):
        if not self.arguments.out:
            return
        folder = pathlib.Path(self.arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").write_text(json.dumps(self.records, indent=1))

    def in_parallel(self, tasks, seconds, jobs):
        """The results of the tasks, functions of a timeout; None for those that had no time."""
        end = time.monotonic() + seconds

        def bounded(task):
            left = end - time.monotonic()
            if left < 3:
                return None
            try:
                return task(left)
            except OSError as error:
                sys.exit(f"{self.arguments.tilewright}: {error}")

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(bounded, tasks))


def architecture(session):
    """What schedules have to be for to be run."""
    target = session.arguments.target
    if target != "cuda":
        return target
    gpus = session.answer("doctor")["gpus"]
    return gpus[0]["arch"] if gpus else sys.exit("there is no GPU here: use --target sm_90a")


def configurations(session):
    a = session.arguments
    target = architecture(session)
    result = []
    for kernel in session.answer("list")["kernels"]:
        if a.kernels and kernel["name"] not in a.kernels.split(",") or kernel["over_ranks"]:
            continue
        options = {option["name"] for option in kernel["options"]}
        variations = [[]] + [variation for variation in VARIATIONS
                             if all(word.split("=")[0] in options for word in variation)]
        schedules = [schedule["name"] for schedule in kernel["schedules"]
                     if schedule["target"] == target]
        for schedule in ["tile", *schedules]:
            result += [(kernel["name"], [f"schedule={schedule}", *taken(kernel["name"], variation)])
                       for variation in variations]
    return result


def taken(kernel, variation):
    """The variation in words that the kernel takes."""
    return [word for setting in variation for word in IN_PLACE.get((kernel, setting), [setting])]


def outcome_of(status, answer):
    """One word for what a stress run showed."""
    if answer is None:
        return {None: "unfinished", USAGE: "refused"}.get(status, "crashed")
    if answer.get("rejected"):
        return "rejected"
    gpu = answer.get("gpu", {})
    if gpu.get("hangs"):
        return "hang"
    if gpu.get("error"):
        return "error"
    if gpu.get("plain_mismatches") or gpu.get("delayed_mismatches"):
        return "mismatch"
    if answer.get("simulator"):
        return "simulator"
    return "ok"


def escapes(session):
    a = session.arguments
    wanted = configurations(session)
    random.Random(a.seed).shuffle(wanted)  # long ones are not all at the end

    def task_of(kernel, settings):
        def task(left):
            words = session.stress(kernel, settings, "--runs", str(a.runs), "--schedules", "2")
            status, out, err = run_process(words, left)
            answer = parse(out)
            return session.record(phase="escapes", kernel=kernel, settings=settings, status=status,
                                  outcome=outcome_of(status, answer), answer=answer,
                                  stderr=err[-2000:], command=" ".join(words))
        return task

    results = session.in_parallel([task_of(*item) for item in wanted], a.seconds, a.jobs)
    print(f"{'kernel':<26} {'schedules':>9} {'clean':>6} {'runs':>7} {'hangs':>6} "
          f"{'mismatches':>10} "
          f"{'errors':>7} {'not run':>8} {'refused':>8}")
    total = collections.Counter()
    for kernel in sorted({name for name, _ in wanted}):
        counts = collections.Counter()
        for (name, _), result in zip(wanted, results):
            if name != kernel:
                continue
            # What an operation refuses, such as a window of pairs of tiles, is no schedule of it.
            if result is not None and result["outcome"] == "refused":
                counts["refused"] += 1
                continue
            counts["schedules"] += 1
            if result is None or result["outcome"] == "unfinished":
                counts["not run"] += 1
                continue
            answer = result["answer"] or {}
            gpu = answer.get("gpu", {})
            counts["clean"] += answer.get("simulator") == ""
            counts["runs"] += gpu.get("plain_runs", 0) + gpu.get("delayed_runs", 0)
            counts["hangs"] += gpu.get("hangs", 0)
            counts["mismatches"] += (gpu.get("plain_mismatches", 0) +
                                     gpu.get("delayed_mismatches", 0))
            counts["errors"] += result["outcome"] in ("error", "crashed")
        print_counts(kernel, counts)
        total.update(counts)
    print_counts("all", total)
    for result in results:
        if result is not None and result["outcome"] != "ok":
            reason = (result["answer"] or {}).get("gpu", {})
            text = (reason.get("error") or reason.get("first_mismatch") or
                    (result["answer"] or {}).get("simulator") or result["stderr"])
            if result["outcome"] == "refused":  # without the kernel's line
                text = text.partition("\n")[0]
            print(f"  {result['outcome']}: {result['kernel']} {' '.join(result['settings'])}: "
                  f"{text.strip()[:300]}")
    return total["hangs"] + total["mismatches"] + total["errors"] == 0


def print_counts(name, counts):
    print(f"{name:<26} {counts['schedules']:>9} {counts['clean']:>6} {counts['runs']:>7} "
          f"{counts['hangs']:>6} {counts['mismatches']:>10} {counts['errors']:>7} "
          f"{counts['not run']:>8} {counts['refused']:>8}")


def name_of(subject):
    return " ".join([subject[0], *subject[1]])


def draw_mutants(session):
    """(subject, number, mutant): every kind in turn, each time another place and kernel."""
    a = session.arguments
    draw = random.Random(a.seed)
    by_kind = collections.defaultdict(list)

    def list_of(subject):
        status, out, err = run_process(session.stress(*subject[:2], "--list-mutants"), 60)
        return json.loads(out) if status == 0 else sys.exit(f"--list-mutants: {err}")

    subjects = SUBJECTS + [(path, [], []) for path in a.files]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        lists = list(pool.map(list_of, subjects))
    for subject, mutants in zip(subjects, lists):
        for number, mutant in enumerate(mutants):
            if not mutant["equivalent"]:
                by_kind[mutant["kind"]].append((subject, number, mutant))
    for mutants in by_kind.values():
        draw.shuffle(mutants)
    drawn = []
    while len(drawn) < a.mutants and any(by_kind.values()):
        for kind in sorted(by_kind):
            if by_kind[kind] and len(drawn) < a.mutants:
                drawn.append(by_kind[kind].pop())
    return drawn


def run_mutants(session):
    a = session.arguments
    drawn = draw_mutants(session)
    sanitizer = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin")
    if a.target != "cuda":
        sanitizer = None

    def stress_task(subject, number, mutant):
        kernel, settings, _ = subject

        def task(left):
            words = session.stress(kernel, settings, "--mutant", str(number), "--runs", "6",
                                   "--schedules", "4", "--patience", str(a.patience))
            status, out, err = run_process(words, left)
            answer = parse(out)
            return session.record(phase="mutants", kernel=kernel, settings=settings, number=number,
                                  mutant=mutant, status=status, answer=answer,
                                  outcome=outcome_of(status, answer), stderr=err[-2000:])
        return task

    def sanitizer_task(subject, number, tool):
        kernel, settings, lengths = subject

        def task(left):
            one = ["--mutant", str(number)] if number is not None else []
            words = [sanitizer, "--tool", tool,
                     *session.stress(kernel, settings + lengths, *one, "--no-simulation", "--runs",
                                     "1", "--patience", "15")]
            status, out, err = run_process(words, min(left, 20))
            # It says what it saw when the program ends: one that hangs leaves no summary.
            summary = SANITIZER_SUMMARY.search(out + err)
            noticed = int(summary[1] or summary[2]) > 0 if summary else None
            return session.record(phase="sanitizer", kernel=kernel, settings=settings,
                                  number=number, tool=tool, status=status, noticed=noticed,
                                  text=(out + err)[-4000:])
        return task

    stress_tasks = [stress_task(*item) for item in drawn]
    sanitized = drawn[:a.sanitize] if sanitizer else []
    # The kernels as they are first: what a tool says of these it may say of a mutant too.
    bare = list({id(item[0]): item[0] for item in sanitized}.values())
    keys = [(name_of(subject), None, tool) for subject in bare for tool in SANITIZER_TOOLS]
    tasks = [sanitizer_task(subject, None, tool) for subject in bare for tool in SANITIZER_TOOLS]
    keys += [(name_of(subject), number, tool) for subject, number, _ in sanitized
             for tool in SANITIZER_TOOLS]
    tasks += [sanitizer_task(subject, number, tool) for subject, number, _ in sanitized
              for tool in SANITIZER_TOOLS]
    # A mutant that hangs takes its share of the GPU from the others until it is ended.
    results = session.in_parallel(stress_tasks + tasks, a.mutant_seconds, min(a.jobs, 12))
    tool_results = dict(zip(keys, results[len(drawn):]))
    print_mutants(drawn, results[:len(drawn)], tool_results, bool(sanitizer))


def sanitizer_verdict(subject, number, tools):
    """None if it was not asked or gave no answer; else whether it says more than of the kernel."""
    answers = []
    for tool in SANITIZER_TOOLS:
        result = tools.get((name_of(subject), number, tool))
        bare = tools.get((name_of(subject), None, tool))
        if result is None or result["noticed"] is None:
            continue
        answers.append(result["noticed"] and not (bare and bare["noticed"]))
    return any(answers) if answers else None


def print_mutants(drawn, results, tools, has_sanitizer):
    columns = ["mutants", "rejected", "hang", "error", "mismatch", "hardware", "asked",
               "sanitizer", "simulator"]
    rows = collections.defaultdict(collections.Counter)
    names = {}
    for (subject, number, mutant), result in zip(drawn, results):
        if result is None or result["outcome"] in ("unfinished", "crashed", "refused"):
            rows[mutant["kind"]]["unfinished"] += 1
            names[mutant["kind"]] = mutant["name"]
            continue
        names[mutant["kind"]] = mutant["name"]
        row = rows[mutant["kind"]]
        row["mutants"] += 1
        outcome = result["outcome"]
        if outcome in ("rejected", "hang", "error", "mismatch"):
            row[outcome] += 1
        row["hardware"] += outcome in ("hang", "error", "mismatch")
        row["simulator"] += bool((result["answer"] or {}).get("simulator"))
        verdict = sanitizer_verdict(subject, number, tools)
        if verdict is not None:
            row["asked"] += 1
            row["sanitizer"] += verdict
    print("\nmutants: what each noticed (hardware: hang, error or mismatch, plain or with delays)")
    print(f"{'fault':<52} " + " ".join(f"{column:>9}" for column in columns))
    total = collections.Counter()
    for kind in sorted(rows):
        total.update(rows[kind])
        print(f"{kind:>2} {names[kind]:<49} " +
              " ".join(f"{rows[kind][column]:>9}" for column in columns))
    print(f"{'all':<52} " + " ".join(f"{total[column]:>9}" for column in columns))
    unseen = [(subject, mutant) for (subject, _, mutant), result in zip(drawn, results)
              if result is not None and result["outcome"] == "ok"]
    for subject, mutant in unseen:
        print(f"noticed by nobody: {name_of(subject)}: kind {mutant['kind']}, "
              f"{mutant['where'].rsplit('/', 1)[-1]}, {mutant['operation']} {mutant['change']}")
    if total["unfinished"]:
        print(f"{total['unfinished']} mutants had no time or gave no answer, and are in no row")
    if not has_sanitizer:
        print("compute-sanitizer: not here, or no GPU was asked for")
    for (_, number, tool), result in tools.items():
        if result is None:
            continue
        if number is None:
            said = {None: "no summary: " + " ".join(result["text"].split())[-200:],
                    True: "reports errors", False: "reports nothing"}
            print(f"{tool} of {result['kernel']} {' '.join(result['settings'])} without a fault: "
                  f"{said[result['noticed']]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default="build/release/bin/tilewright")
    parser.add_argument("--target", default="cuda", help="cuda, or sm_90a: without a GPU")
    parser.add_argument("--kernels", help="NAME,...; else all of the library")
    parser.add_argument("--runs", type=int, default=20, help="of each size and grid, with delays")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=600, help="for all kernels; then it stops")
    parser.add_argument("--mutants", type=int, default=0, help="to draw")
    parser.add_argument("--mutants-only", type=int, default=0, metavar="MUTANTS",
                        help="to draw; no kernel is run without a fault")
    parser.add_argument("--files", nargs="*", default=[],
                        help="kernels of files (.tw) that mutants are made of too")
    parser.add_argument("--patience", type=float, default=3,
                        help="seconds until a mutant's launch counts as hanging")
    parser.add_argument("--sanitize", type=int, default=0, help="of them, under compute-sanitizer")
    parser.add_argument("--mutant-seconds", type=float, default=600)
    parser.add_argument("--out", help="a folder for results.json: every command and its answer")
    arguments = parser.parse_args()
    session = Session(arguments)
    status, _, err = run_process(session.stress("gemm", [], "--list-mutants"), 60)
    if status == UNAVAILABLE:
        sys.exit(err)
    start = time.monotonic()
    arguments.mutants = arguments.mutants_only or arguments.mutants
    ok = arguments.mutants_only > 0 or escapes(session)
    print(f"{time.monotonic() - start:.0f} s", flush=True)
    session.write()
    if arguments.mutants:
        run_mutants(session)
        print(f"{time.monotonic() - start:.0f} s", flush=True)
        session.write()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()

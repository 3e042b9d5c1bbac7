"""What scripts/prove runs: of which kernels and settings, how often, and in which order."""

import pathlib
import tempfile
import time
import unittest

from prove_module import result

from proving import changes, processes
from proving.changes import (
    Place,
    chosen_mutants,
    of_core,
    text_of,
    what_is_the_same,
    where_it_shows,
)
from proving.clean_tasks import (
    clean_tasks,
    control_tasks,
    least_of_a_case,
    more_value_tasks,
    value_tasks,
    wanted_schedules,
)
from proving.fault_tasks import (
    AGAIN_SETTINGS,
    AT_ONCE,
    FURTHER_OF_CORES,
    FURTHER_PLACES,
    LATE_SETTINGS,
    MUTANTS,
    PATIENT,
    Again,
    fault_tasks,
    key_of_numbers,
    patient_tasks,
    task_of_numbers,
    tasks_of_numbers,
)
from proving.order import ORDER, Queue
from proving.printed_tasks import printed_tasks, with_printed
from proving.processes import LEAST_SECONDS, MUTANT_SECONDS, ended_run, executed, patience
from proving.results import costs_of, further_costs, leaves_no_order, schedules_of
from proving.subjects import CORES, LENGTHS, TARGET, Subject, files_of, named, write_lengths


class Files(unittest.TestCase):
    def test_those_of_cores_and_programs_of_any_size_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"gpu.tw": 'kernel "k"\ndim m\n', "core.tw": 'target "incore"\n',
                               "sized.twp": 'program "p" 1 ranks\ntensor "x"\ndim m\n',
                               "any.twp": 'program "p" 1 ranks\ndim m\n'}.items():
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            names = [pathlib.Path(subject.name).name for subject in files_of(folder)]
        self.assertEqual(names, ["gpu.tw", "sized.twp"])

    def test_a_file_is_for_the_target_that_it_names(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, target in (("a.tw", "sm_90a"), ("b.tw", "sm_100a")):
                pathlib.Path(folder, name).write_text(f'kernel "k" scheduled\ntarget "{target}"\n',
                                                      encoding="utf-8")
            files = files_of(folder)
        self.assertEqual([(s.target, s.settings) for s in files],
                         [("sm_90a", []), ("sm_100a", ["target=sm_100a"])])


class Cores(unittest.TestCase):
    def test_files_are_of_gpus_or_of_the_core_that_they_name(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a.tw", 'kernel "a"\n'),
                               ("b.tw", 'kernel "b"\ntarget "incore_unified"\n')):
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            of_gpus, of_cores = files_of(folder), files_of(folder, of_cores=True)
        self.assertEqual([(s.target, s.is_of_core) for s in of_gpus], [("sm_90a", False)])
        self.assertEqual([(s.target, s.is_of_core) for s in of_cores], [("incore_unified", True)])
        self.assertEqual(of_cores[0].set, [])

    def test_a_program_that_names_no_core_is_of_each(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"paged_attention.twp": 'program "p" 1 ranks\ndim m\n',
                               "paged_attention_incore.twp":
                                   'program "p" 1 ranks\ndim m\ntarget "incore"\n',
                               "other.twp": 'program "p" 1 ranks\ndim m\n'}.items():
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            subjects = files_of(folder, of_cores=True)
        self.assertEqual([(pathlib.Path(s.name).name, s.target) for s in subjects],
                         [("paged_attention.twp", core) for core in CORES]
                         + [("paged_attention_incore.twp", "incore")])

    def test_each_has_a_change_of_a_line_of_its_own(self):
        mutant = {"kind": 50, "where": "a/gemm.cpp:7", "operation": "core_move a",
                  "change": "left out"}
        texts = {text_of(of_core(mutant, target))
                 for target in ("incore", "incore_unified", "sm_90a", "sm_100a")}
        self.assertEqual(len(texts), 3)
        self.assertIn("gemm.cpp:7 on incore_unified", " ".join(texts))

    def test_processes_take_about_as_long(self):
        subject = Subject("gemm", [TARGET + "incore"], True)
        for cost, count in ((0.1, MUTANTS), (2, 30), (1000, 20)):
            tasks = list(tasks_of_numbers(subject, list(range(1000)),
                                          {named(subject): cost}))
            self.assertEqual(len(tasks), -(-1000 // count))

    def test_cost_what_all_sizes_take(self):
        def of(target, settings):
            return {"key": ["gemm", settings, "values", 0], "seconds": 7,
                    "answer": {"target": target, "schedules": 4, "operations": 400}}
        self.assertEqual(costs_of([of("incore", "a=1"), of("sm_90a", "b=2")]),
                         {("gemm", ("a=1",)): 7, ("gemm", ("b=2",)): 100})

    def test_dear_schedules_are_shared_out(self):
        subject = Subject("gemm", ["a"], False, cases=("one",))
        for cost, count in ((1e4, 1), (1e6, 4)):
            tasks = list(clean_tasks(None, "control", [subject], {named(subject): 1000},
                                     costs={named(subject): cost}))
            self.assertEqual([int(words[-1]) for _, words in tasks], [1000 // count] * count)

    def test_one_launch_is_enough(self):
        subject = Subject("gemm", [TARGET + "incore"], False, cases=("one",))
        wanted = {named(subject): 1}
        (_, words), = clean_tasks(None, "values", [subject], wanted)
        self.assertEqual(words[words.index("--launches") + 1], "1")
        self.assertNotIn("--strict", words)

    def test_one_schedule_of_a_program_is_all(self):
        def of(target):
            return {"key": ["p", "", "values", 0],
                    "answer": {"program": "p", "target": target, "cases": [{"one_for_all": True}]}}
        self.assertTrue(leaves_no_order(of("incore")))
        # A GPU's has other numbers of multiprocessors.
        self.assertFalse(leaves_no_order(of("sm_90a")))

    def test_a_program_that_reads_is_told_what(self):
        with tempfile.TemporaryDirectory() as folder:
            write_lengths(folder)
            path = pathlib.Path(folder, "lengths.npy")
            self.assertIn(f"lengths={path}",
                          Subject("x/paged_attention_incore.twp", [], True).set)
            self.assertEqual(len(path.read_bytes()), 128 + 4 * len(LENGTHS))
        self.assertEqual(Subject("x/other.twp", [], True).set, [])


class Processes(unittest.TestCase):
    def test_seconds_are_those_of_a_core(self):
        ended = executed(["sh", "-c", "echo out; echo err >&2; sleep 0.2; exit 3"], 60)
        self.assertEqual(ended[:3], (3, "out\n", "err\n"))
        self.assertLess(ended.seconds, 0.15)

    def test_what_takes_too_long_has_no_status(self):
        self.assertIsNone(executed(["sleep", "30"], 0.05).status)

    def test_waits_as_long_as_others_took(self):
        self.assertEqual(patience([0.1, 0.1, 60]), LEAST_SECONDS)
        self.assertEqual(patience([3.0]), 60)
        self.assertEqual(patience([30, 0.1, 40]), MUTANT_SECONDS)

    def test_what_judges_no_further_mutant_has_no_status(self):
        usual = processes.BEGIN_SECONDS
        processes.BEGIN_SECONDS = 0.05
        try:
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, "judged")
                begin = time.monotonic()
                self.assertIsNone(executed(["sleep", "30"], 60, file).status)
                self.assertLess(time.monotonic() - begin, 10)
                write = ["sh", "-c", f"echo >{file}; sleep 1.2"]
                self.assertEqual(executed(write, 60, file).status, 0)
        finally:
            processes.BEGIN_SECONDS = usual

    def test_of_a_run_that_was_ended_the_others_are_made(self):
        (task,) = tasks_of_numbers(Subject("gemm", [], True), [3, 5, 8, 9], {})
        with tempfile.TemporaryDirectory() as folder:
            judged = pathlib.Path(folder, "judged")
            judged.write_text('{"kind": 1}\n{"ki', encoding="utf-8")
            late, (key, words) = ended_run(task, judged, has_time=True)
            cut, none = ended_run(task, judged, has_time=False)
        self.assertEqual(late["answer"]["mutants"], [{"kind": 1}])
        self.assertEqual((late["answer"]["late"], late["ended"]), ([5], "too long"))
        self.assertEqual(words[words.index("--mutants") + 1], "8,9")
        self.assertEqual(key[3], key_of_numbers([8, 9]))
        # The one that time has ended has no answer, and is made again by the same command.
        self.assertNotIn("late", cut["answer"])
        self.assertIsNone(none)
        keys = {late["key"][3], cut["key"][3], task[0][3]}
        self.assertEqual(len(keys), 3)

    def test_what_does_not_compile_is_told_and_left_out(self):
        class Arguments:
            tilewright = "false"
            refused = []
        self.assertEqual(changes.mutants_of(Arguments, Subject("gemm", ["dim=3"], True)), {})
        self.assertEqual(Arguments.refused, ["gemm dim=3: "])


def places(*numbers, form=""):
    return [Place(number, form) for number in numbers]


class Tasks(unittest.TestCase):
    """Six settings that have one text in seven places; the first has another one too."""

    def setUp(self):
        class Arguments:
            short = False
            jobs = 1
            shard = "1/1"
            before = []
        self.arguments = Arguments
        self.of_list = changes.mutants_of
        self.subjects = [Subject("gemm", [name], True) for name in "abcdef"]

        def mutants_of(_, subject):
            texts = {"everywhere": places(*range(7))}
            if subject.settings == ["a"]:
                texts["here alone"] = places(7)
            return texts
        changes.mutants_of = mutants_of

    def tearDown(self):
        changes.mutants_of = self.of_list

    def chosen(self, subjects):
        self.arguments.texts = None  # nothing is kept of another call
        return {words[words.index("--set") + 1]: words[words.index("--mutants") + 1].split(",")
                for _, words in fault_tasks(self.arguments, subjects, [])}

    def test_a_change_is_made_once_with_the_setting_that_has_most(self):
        chosen = self.chosen(self.subjects)
        self.assertEqual(list(chosen), ["a"])
        self.assertEqual(len(chosen["a"]), 2)
        self.assertIn("7", chosen["a"])

    def test_of_those_that_have_as_much_the_cheapest_comes_first(self):
        def values(name, operations):
            return {"key": ["gemm", name, "values", 0],
                    "answer": {"operations": operations, "schedules": 2}}
        costs = costs_of([values("a", 8000), values("b", 10), values("c", 20)])
        self.assertEqual(costs, {("gemm", ("a",)): 4000, ("gemm", ("b",)): 5, ("gemm", ("c",)): 10})
        having = {"a text": [(Subject("gemm", [name], True), places(1)) for name in "abc"]}
        self.assertEqual(list(chosen_mutants(having, costs)), [("gemm", ("b",))])

    def test_what_another_build_left_open_is_made_with_what_decided_it_there(self):
        having = {"the mutant wgmma_wait rN left out of kind 4 at gemm.cpp:9":
                  [(Subject("gemm", [name], True), places(1)) for name in "abcd"]}

        def settings(*before):
            (own,) = where_it_shows(having, before).values()
            return [subject.settings[0] for subject, _ in own]
        undecided, caught = result("a", True, "undecided"), result("b", True, "caught")
        unreached, equivalent = result("c", True, "unreached"), result("d", True, "equivalent")
        self.assertEqual(settings(undecided, caught), ["b"])
        self.assertEqual(settings(undecided, equivalent), list("abcd"))
        self.assertEqual(settings(unreached, caught, equivalent), ["b", "d"])
        self.assertEqual(settings(caught), list("abcd"))
        self.assertEqual(settings(undecided), list("abcd"))
        caught["answer"]["mutants"][0]["where"] = "matmul.cpp:9"  # another file
        self.assertEqual(settings(undecided, caught), list("abcd"))

    def test_what_has_an_answer_is_not_made_again(self):
        done = result("b", True, "caught")
        text = text_of(done["answer"]["mutants"][0])
        changes.mutants_of = lambda *_: {text: places(1), "another": places(2), "late": places(3)}
        self.arguments.texts = None
        done["answer"]["late"] = [3]
        # What was late is made with other settings.
        late, task = fault_tasks(self.arguments, self.subjects, [done])
        self.assertEqual((late[1][-1], task[1][-1]), ("3", "2"))
        self.assertNotEqual(late[0][1], "b")
        # Other machines do not know of it.
        self.arguments.shard = "1/2"
        *_, task = fault_tasks(self.arguments, self.subjects, [done])
        self.assertEqual(task[1][-1], "1,2,3")

    def test_kernels_that_differ_in_a_name_are_one(self):
        having = {"a text": [(Subject("gemm", [name], True), places(3, form=form))
                             for name, form in [("a", "1"), ("b", "1"), ("c", "2")]]}
        chosen = chosen_mutants(having, {})
        self.assertEqual(len(chosen), 1)
        self.assertEqual(what_is_the_same(having, chosen)[1:],
                         ["the same machine form but for a name: gemm a; gemm b"])

    def test_tasks_of_other_mutants_have_other_keys(self):
        first, second = (task_of_numbers(self.subjects[0], numbers)
                         for numbers in ([1, 2], [1, 3]))
        self.assertNotEqual(first[0], second[0])

    def again(self, *results):
        """What is to be made behind these; the tasks of the last one's open changes are returned
        until there are no more, each of which says the same as that one."""
        again = Again(self.arguments.texts, {}, results[:-1])
        key, rounds = results[-1]["key"], []
        tasks = again.after(key, results[-1], None)
        while tasks:
            rounds.append(tasks)
            tasks = [more for task in tasks
                     for more in again.after(task[0], {**results[-1], "key": task[0]}, None)]
        return rounds

    def test_what_no_chosen_ones_come_to_is_made_with_all_that_have_it(self):
        unreached = result("a", True, "unreached")
        text = text_of(unreached["answer"]["mutants"][0])
        changes.mutants_of = lambda *_: {text: places(*range(7)), "another": places(7)}
        self.chosen(self.subjects)
        rounds = self.again(unreached)
        self.assertEqual([len(tasks) for tasks in rounds],
                         [AT_ONCE, len(self.subjects) - 1 - AT_ONCE, 1])
        for key, words in sum(rounds, []):
            self.assertNotEqual(key[3], 0)
            numbers = words[words.index("--mutants") + 1].split(",")
            self.assertEqual(len(numbers), FURTHER_PLACES)
            self.assertNotIn("7", numbers)
        self.assertEqual(self.again(unreached, result("b", True, "caught")), [])

    def test_what_one_setting_alone_has_is_made_in_other_places_of_it(self):
        unreached = result("a", True, "unreached")
        text = text_of(unreached["answer"]["mutants"][0])
        changes.mutants_of = lambda *_: {text: places(*range(7))}
        self.chosen(self.subjects[:1])
        own = [place.number for place in self.arguments.texts[text][0][1]]
        unreached["key"][1] = " ".join(self.subjects[0].settings)
        unreached["answer"]["mutants"][0]["number"] = own[0]
        (((_, words),),) = self.again(unreached)  # and not once more
        self.assertEqual(words[words.index("--mutants") + 1].split(","),
                         sorted(map(str, own[1:FURTHER_PLACES])))

    def test_what_is_undecided_is_made_with_one_after_the_other_of_other_operations_first(self):
        undecided = result("a", True, "undecided")
        text = text_of(undecided["answer"]["mutants"][0])
        changes.mutants_of = lambda *_: {text: places(*range(7))}
        self.chosen([*self.subjects, Subject("decode", ["z"], True)])
        rounds = self.again(undecided)
        self.assertEqual([len(tasks) for tasks in rounds], [1] * AGAIN_SETTINGS)
        self.assertIn("decode", [tasks[0][0][0] for tasks in rounds[:2]])
        self.assertTrue(all("," not in words[words.index("--mutants") + 1]
                            for ((_, words),) in rounds))
        self.assertEqual(self.again(undecided, result("b", True, "caught")), [])

    def test_on_cores_each_round_makes_what_those_before_it_have_left(self):
        core = TARGET + "incore"
        undecided = result(f"x=0 {core}", True, "undecided")
        undecided["answer"]["mutants"][0] |= {"number": 0, "core": "incore"}
        text = text_of(undecided["answer"]["mutants"][0])
        changes.mutants_of = lambda *_: {text: places(*range(7))}
        self.chosen([Subject("gemm", [f"x={i}", core], True) for i in range(20)])
        own = [place.number for place in self.arguments.texts[text][0][1]]
        undecided["answer"]["mutants"][0]["number"] = own[0]
        self.assertEqual(self.again(undecided), [])

        def numbers(round_of_cores, *results):
            tasks = round_of_cores(self.arguments, [], results)
            return {key[1]: words[words.index("--mutants") + 1].split(",") for key, words in tasks}
        first, second, *_ = FURTHER_OF_CORES
        # Other places of the setting that has left it, and then one of another setting.
        (of_first,) = numbers(first, undecided).items()
        self.assertEqual(of_first[0], f"x=0 {core}")
        self.assertEqual(sorted(map(int, of_first[1])), sorted(own[1:FURTHER_PLACES]))
        tried = [undecided]
        for number in own[1:FURTHER_PLACES]:
            tried.append(result(f"x=0 {core}", True, "undecided"))
            tried[-1]["answer"]["mutants"][0] |= {"number": number, "core": "incore"}
        self.assertEqual(numbers(first, *tried), {})
        (of_second,) = numbers(second, *tried).items()
        self.assertNotEqual(of_second[0], f"x=0 {core}")
        self.assertEqual(len(of_second[1]), 1)
        caught = result(f"x=1 {core}", True, "caught")
        caught["answer"]["mutants"][0]["core"] = "incore"
        self.assertEqual(numbers(second, *tried, caught), {})

    def late(self, settings, text):
        changes.mutants_of = lambda *_: {text: places(3)}
        self.chosen(self.subjects)
        return {"key": ["gemm", settings, "faults", "x"],
                "answer": {"mutants": [], "late": [3]}, "ended": "too long"}

    def test_what_is_not_judged_in_time_is_made_with_others_and_last_without_a_limit(self):
        late = self.late("a", "a text")
        rounds = self.again(late)
        names = {"a", *(task[0][1] for tasks in rounds for task in tasks)}
        self.assertEqual((len(rounds), len(names)), (LATE_SETTINGS, 3))
        results = [{**late, "key": task[0]} for tasks in rounds for task in tasks]
        ((key, words),) = patient_tasks(self.arguments, [], [late, *results])
        self.assertTrue(key[3].startswith(PATIENT))
        self.assertEqual(words[-1], "3")
        verdict = {"key": key, "answer": {"mutants": [
            {**result("a", True, "caught")["answer"]["mutants"][0]}]}}
        text = text_of(verdict["answer"]["mutants"][0])
        late = self.late("a", text)
        self.assertEqual(list(patient_tasks(self.arguments, [], [late, verdict])), [])

    def test_what_a_run_that_was_ended_leaves_is_waited_for(self):
        undecided = result("a", True, "undecided")
        mutant = undecided["answer"]["mutants"][0]
        undecided["answer"]["mutants"].append({**mutant, "where": "gemm.cpp:8"})
        texts = [text_of(mutant) for mutant in undecided["answer"]["mutants"]]
        changes.mutants_of = lambda *_: {texts[0]: places(1), texts[1]: places(2)}
        self.chosen(self.subjects[:2])
        again = Again(self.arguments.texts, {}, [])
        ((key, words),) = again.after(undecided["key"], undecided, None)
        self.assertEqual(words[-1], "1,2")
        # The first of the two is judged, and another process makes the second.
        half = {"key": [*key[:3], "half"], "answer": {"mutants": [mutant]}}
        rest = ([*key[:3], "rest"], [])
        self.assertEqual(again.after(key, half, rest), [])
        self.assertEqual([again.under_way[text] for text in texts], [0, 1])
        self.assertEqual(again.after(rest[0], None, None), [])
        self.assertEqual(again.under_way[texts[1]], 0)


class Printed(unittest.TestCase):
    def test_each_case_and_each_text_is_executed_at_the_least_cost_and_all_without_cases(self):
        subjects = [Subject("gemm", [name], True, cases=("often",)) for name in "abcdef"]
        subjects += [Subject("gemm", ["g"], True, cases=("often", "seldom")),
                     Subject("own.tw", [], True)]
        costs = {("gemm", (name,)): 1e6 * cost
                 for name, cost in zip("abcdefg", [9, 1, 2, 3, 4, 5, 80])}

        def chosen(texts):
            return {"".join(s.settings) or s.name
                    for s in with_printed(subjects, costs, texts)}
        self.assertEqual(chosen({}), {"b", "g", "own.tw"})
        place = [Place(0, "form")]
        texts = {"one": [(subjects[0], place), (subjects[2], place)],
                 "other": [(subjects[3], place)],
                 "of a program": [(Subject("other", [], True), place)]}
        self.assertEqual(chosen(texts), {"c", "d", "g", "own.tw"})


class Schedules(unittest.TestCase):
    def test_the_setting_with_most_cases_for_its_cost_has_most_of_their_schedules(self):
        class Arguments:
            schedules, valued = 1000, 8
            all_subjects = [Subject("gemm", ["a"], True, cases=("often", "seldom")),
                            *(Subject("gemm", [name], True, cases=("often",))
                              for name in "bcdef"),
                            # Another level's case, and settings that are there for themselves.
                            Subject("gemm", ["schedule=tile"], True, cases=("often",)),
                            Subject("gemm", ["g"], False, cases=("often",))]
        costs = {("gemm", (name,)): 1 + (name == "b") for name in "abcdef"}
        wanted = wanted_schedules(Arguments, "control", Arguments.all_subjects, costs)
        # Those of "seldom" are of "often" too.
        self.assertEqual([wanted[("gemm", (name,))] for name in "abcdefg"],
                         [1000, *[0] * 6])
        self.assertEqual(wanted[("gemm", ("schedule=tile",))], 1000)
        Arguments.all_subjects[0] = Subject("gemm", ["a"], True, cases=("often",))
        wanted = wanted_schedules(Arguments, "control", Arguments.all_subjects, costs)
        self.assertEqual([wanted[("gemm", (name,))] for name in "abcdefg"],
                         [1000, *[0] * 6])
        # Those that need none do not count: of the others the case has as many.
        wanted = wanted_schedules(Arguments, "control", Arguments.all_subjects[1:], costs)
        self.assertEqual([wanted[("gemm", (name,))] for name in "bcdefg"],
                         [0, 1000, *[0] * 4])
        done = [{"key": ["gemm", "f", "values", 0], "answer": {"schedules": 1, "operations": 1,
                 "cases": [{"one_for_all": True}]}}]
        more = {key[1]: (key[3], words[words.index("--schedules") + 1]) for key, words in
                more_value_tasks(Arguments, Arguments.all_subjects, done)}
        # Of "f" one schedule stands for all, so that it counts as none of the 8.
        self.assertEqual(more, {"a": (1, "2"), "schedule=tile": (1, "7")})
        came_to = {"gemm a": 1000, "gemm b": 300, "gemm c": 10, "gemm schedule=tile": 900}
        self.assertEqual(least_of_a_case(Arguments, came_to), ("gemm", "often", 900))

    def test_a_further_schedule_is_most_often_of_a_small_size(self):
        def values(*operations, **more):
            return {"key": ["gemm", "a", "values", 0], "answer": {
                "schedules": len(operations), "operations": sum(operations),
                "cases": [{"operations": each, **more} for each in operations]}}
        cost = further_costs([values(100, 200)])[("gemm", ("a",))]
        self.assertAlmostEqual(cost, (16 * 100 + 200) / 17)
        self.assertEqual(further_costs([values(100, one_for_all=True)]), {})

    def test_no_more_begin_where_one_schedule_stands_for_all(self):
        def done(*cases):
            return [{"key": ["gemm", "b", "control", 0], "seconds": 1,
                     "answer": {"schedules": 25, "cases": list(cases)}}]
        left = [(["gemm", "b", "control", 25], [])]
        one, many = {"sizes": "m=1", "one_for_all": True}, {"sizes": "m=2", "schedules": 20}
        def queue(results):
            return Queue([control_tasks], lambda _: list(left), results)
        self.assertIsNone(queue(done(one)).take())
        self.assertIsNotNone(queue(done(one, many)).take())

    def test_steps_begin_while_others_end(self):
        tasks = {value_tasks: ["a", "b"], fault_tasks: ["c"],
                 patient_tasks: ["d"], printed_tasks: ["e"]}
        queue = Queue([step for step in ORDER if step in tasks], lambda step: [
            ([name, "", step.__name__, 0], []) for name in tasks[step]], [])
        self.assertEqual([queue.take()[1][0] for _ in "abce"], ["a", "b", "c", "e"])
        # What has no verdict is known once they have ended.
        result = {"key": ["c", "", "faults", 0], "seconds": 1, "answer": {}}
        queue.finish(fault_tasks, result, [(["f", "", "faults", 1], [])])
        self.assertEqual(queue.take()[1][0], "f")
        queue.finish(fault_tasks, None)
        self.assertEqual(queue.take()[1][0], "d")
        for step in (value_tasks, value_tasks, printed_tasks):
            queue.finish(step, None)
        queue.finish(patient_tasks, result)
        self.assertIsNone(queue.take())
        self.assertEqual((queue.asked, queue.missing), (6, 4))

    def test_what_took_longest_before_goes_first_and_faults_begin_with_the_values(self):
        tasks = {value_tasks: ["a", "b"], fault_tasks: ["c"],
                 printed_tasks: ["e"]}
        before = [{"key": [name, "", step.__name__, 0], "seconds": seconds}
                  for name, step, seconds in (("a", value_tasks, 1),
                                              ("b", value_tasks, 9),
                                              ("c", fault_tasks, 5))]
        queue = Queue(list(tasks), lambda step: [
            ([name, "", step.__name__, 0], []) for name in tasks[step]], [], before)
        self.assertEqual([queue.take()[1][0] for _ in "bcae"], ["b", "c", "a", "e"])
        # What has no time any more comes behind the others.
        queue = Queue(list(tasks), lambda step: [
            ([name, "", step.__name__, 0], []) for name in tasks[step]], [], before,
                      time.monotonic() + 7)
        self.assertEqual([queue.take()[1][0] for _ in "cabe"], ["c", "a", "b", "e"])

    def test_of_what_hangs_on_the_order_as_many_are_executed_as_are_wanted(self):
        def done(several):
            return {"status": 0, "answer": {"schedules": 250 + several, "cases": [
                {"sizes": "m=1", "schedules": 250, "one_for_all": True},
                {"sizes": "m=2", "schedules": several}]}}
        self.assertEqual(schedules_of(done(100)), 100)
        self.assertEqual(schedules_of({"answer": {"schedules": 7}}), 7)
        self.assertEqual(schedules_of({"answer": {"cases": [{"agrees": True}]}}), 0)

    def test_what_values_leave_no_order_in_is_not_run_without_them(self):
        class Arguments:
            schedules, valued = 1600, 8
            all_subjects = [Subject("gemm", [name], True, cases=(name,)) for name in "abc"]

        def done(name, of_all, **more):
            return {"key": ["gemm", name, "values", 0],
                    "answer": {"operations": 8, "schedules": 8, **more,
                               "cases": [{"operations": 8, "one_for_all": of_all}]}}
        results = [done("a", True), done("b", False), done("c", True, program="gemm")]
        of_values = value_tasks(Arguments, Arguments.all_subjects, [])
        self.assertEqual([key for key, _ in of_values],
                         [["gemm", name, "values", 0] for name in "abc"])
        asked = {(key[1], key[3]): words[words.index("--schedules") + 1] for key, words in
                 control_tasks(Arguments, Arguments.all_subjects, results)}
        self.assertEqual(asked, {("b", 0): "1000", ("b", 1000): "600",
                                 ("c", 0): "1000", ("c", 1000): "600"})


if __name__ == "__main__":
    unittest.main()

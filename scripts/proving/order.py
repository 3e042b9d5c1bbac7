"""The order in which tasks begin."""

import collections
import threading
import time

from .clean_tasks import control_tasks, more_value_tasks, value_tasks
from .fault_tasks import FURTHER_OF_CORES, fault_tasks, patient_tasks
from .printed_tasks import printed_tasks
from .results import stands_for_all

TASKS = {"clean": [value_tasks, more_value_tasks, control_tasks],
         "faults": [fault_tasks, *FURTHER_OF_CORES, patient_tasks], "printed": [printed_tasks]}
# The order of their beginnings. Of the first all tasks have begun before others do, which take a
# setting that still runs for a dear one. All other faults have ended before what has no verdict is
# made.
ORDER = [value_tasks, fault_tasks, more_value_tasks, control_tasks, *FURTHER_OF_CORES,
         printed_tasks, patient_tasks]
ENDED = dict(zip([*FURTHER_OF_CORES, patient_tasks], [fault_tasks, *FURTHER_OF_CORES]))
# Where another build's results say what settings cost, the dearest faults begin with the values.
TOGETHER = 2
# What faults leave open is made before what comes behind them.
RANKS = {step: max(0, i - 1) for i, step in enumerate(ORDER)}


class Queue:
    """Tasks of one step after the other: first one of every configuration, then those of the
    configurations that take longest.

    The next step is begun once none of the one before is left to begin, while the last of these
    still run, if it has no need of what they find. Else a later step is. What took longer so far
    than there is time comes last. Where one schedule stands for all, the first one is enough."""

    def __init__(self, steps, tasks_of, done, before=(), end=float("inf")):
        self.changed, self.time_ends = threading.Condition(), end
        self.seconds = collections.defaultdict(float)  # of the longest task so far
        for result in before:
            self.note_seconds(result)
        self.have_all = set()
        self.steps, self.tasks_of = list(steps), tasks_of
        self.tasks = []  # of the steps begun so far
        self.begun = collections.Counter()  # of each step how many tasks have not ended
        self.asked = 0
        self.missing = 0
        for result in done:
            self.note(result)
        for _ in range(TOGETHER if before else 1):
            self.begin_next()

    @staticmethod
    def configuration(key):
        return tuple(key[:3])

    def note_seconds(self, result):
        configuration = self.configuration(result["key"])
        self.seconds[configuration] = max(self.seconds[configuration], result["seconds"])
        return configuration

    def note(self, result):
        configuration = self.note_seconds(result)
        if stands_for_all(result):
            self.have_all.add(configuration)

    def begin_next(self):
        """Whether another step could be begun."""
        for step in self.steps:
            before = ENDED.get(step)
            if before in self.steps or self.begun[before] > 0:
                continue
            self.steps.remove(step)
            self.add(step, self.tasks_of(step))
            return True
        return False

    def add(self, step, tasks):
        self.tasks += [(step, *task) for task in tasks]
        self.begun[step] += len(tasks)
        self.asked += len(tasks)

    def take(self):
        """The next task, behind its step, or None where there is none any more."""
        with self.changed:
            while True:
                while not self.tasks:
                    if self.begin_next():
                        continue
                    if not self.steps and not any(self.begun.values()):
                        return None
                    self.changed.wait()

                task = max(self.tasks, key=self.urgency)  # of equals the first
                self.tasks.remove(task)
                # Until it is known, those that nobody has begun come first.
                self.seconds.setdefault(self.configuration(task[1]), 0.0)
                if self.configuration(task[1]) not in self.have_all:
                    return task
                self.end(task[0])

    def urgency(self, task):
        seconds = self.seconds.get(self.configuration(task[1]))
        return (seconds is None or seconds <= self.time_ends - time.monotonic(),
                -RANKS.get(task[0], 0), float("inf") if seconds is None else seconds)

    def end(self, step):
        self.begun[step] -= 1
        self.changed.notify_all()

    def finish(self, step, result, more=()):
        """Without a result it had no time. More tasks are what it has left undone."""
        with self.changed:
            if result is not None:
                self.note(result)
            self.missing += result is None or result.get("ended") == "no time"
            self.add(step, list(more))
            self.end(step)

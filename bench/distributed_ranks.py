"""A process for each GPU, as operations over ranks are used: ours, cuBLAS and FlashAttention-3 with
NCCL, and PyTorch's symmetric-memory operations, on the same tensors. The process that starts them
says what is checked and what is timed."""

import math
import pathlib
import statistics
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

import measure
from attention_ranks import AttentionSide, GradientSide, PackedGradientSide, PackedSide
from distributed_exchanges import ExchangeSide
from distributed_products import ProductSide, ProjectionSide

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import tilewright  # noqa: E402

SIDES = {"gemm_reduce_scatter": ProductSide, "all_gather_gemm": ProductSide,
         "projection_all_to_all": ProjectionSide,
         "sequence_parallel_attention": AttentionSide, "ring_attention": AttentionSide,
         "sequence_parallel_attention_backward": GradientSide,
         "ring_attention_backward": GradientSide,
         "sequence_parallel_varlen_attention": PackedSide, "ring_varlen_attention": PackedSide,
         "sequence_parallel_varlen_attention_backward": PackedGradientSide,
         "ring_varlen_attention_backward": PackedGradientSide}
SLEEP_CYCLES = 20_000_000  # the GPU waits while the host queues a round


class Rank:
    """What one process has: a row's tensors, and what can be launched on them by its name. Ours is
    named by the values of its options, a tuple of pairs."""

    def __init__(self, rank, ranks, store, library):
        torch.cuda.set_device(rank)
        self.rank, self.ranks, self.device = rank, ranks, torch.device("cuda", rank)
        dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank,
                                world_size=ranks, device_id=self.device)
        self.library = tilewright.load_library(library)
        self.group = tilewright.Group.by_file(store + ".tilewright", rank=rank, size=ranks,
                                              library=self.library)
        self.torch_group = dist.group.WORLD.group_name
        try:
            from torch.distributed._symmetric_memory import enable_symm_mem_for_group
            enable_symm_mem_for_group(self.torch_group)
        except (ImportError, RuntimeError) as error:
            print(f"rank {rank}: no symmetric memory: {error}", flush=True)
        self.row, self.side, self.made, self.shared = None, None, {}, []

    def take(self, row):
        if row == self.row:
            return
        self.give_back()
        self.row = row
        torch.manual_seed(self.rank)
        self.side = SIDES.get(row[0], ExchangeSide)(*row, self.ranks, self.device, self.symmetric)

    def give_back(self):
        for kernel in self.made.values():
            kernel.close()
        self.side, self.made = None, {}
        dist.barrier()
        torch.cuda.synchronize()
        for memory in self.shared:
            memory.close()
        self.shared = []
        torch.cuda.empty_cache()

    def symmetric(self, *shape):
        """Elements of bf16 that other ranks reach."""
        memory = tilewright.SymmetricMemory(self.group, 2 * math.prod(shape), "result",
                                            memory="gpu", device=self.rank)
        self.shared.append(memory)
        here = memory.tensor(self.rank, 0, (2 * math.prod(shape),), "u8")
        return torch.as_tensor(here, device=self.device).view(torch.bfloat16).view(shape)

    def kernel(self, name, group, options):
        key = name, tuple(options.items())
        if key not in self.made:
            self.made[key] = tilewright.Kernel(name, device=self.rank, group=group,
                                               library=self.library, **options)
        return self.made[key]

    def launch_of(self, what):
        side = self.side
        if isinstance(what, str) and what != "ours alone":
            return side.launches(self.torch_group)[what]
        if what == "ours alone":
            name, options, tensors = side.alone()
            kernel = self.kernel(name, None, options)
        else:
            tensors = side.tensors()
            kernel = self.kernel(self.row[0], self.group,
                                 {"ranks": self.ranks, **side.options(), **dict(what)})
        return lambda: kernel(*tensors, stream=torch.cuda.current_stream().cuda_stream)

    def seconds(self, what, runs):
        """Of one run of many, by the GPU's clock; queued before the GPU is there."""
        launch = self.launch_of(what)
        for times in (2, runs):  # first calls allocate
            dist.barrier()
            torch.cuda.synchronize()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(SLEEP_CYCLES)
            start.record()
            for _ in range(times):
                launch()
            end.record()
            torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e-3 / runs

    def check(self, what, repeats):
        """The worst error, and whether all runs have the same bits: also where a rank comes late,
        or works on while another is in the next run."""
        launch, outputs = self.launch_of(what), self.side.outputs()
        dist.barrier()
        first, differs = None, torch.zeros((), dtype=torch.bool, device=self.device)
        for repeat in range(1 + repeats):
            measure.poison(outputs)
            if (repeat + self.rank) % 3 == 0:
                torch.cuda._sleep(10_000 * (1 + repeat % 7))
            for _ in range(1 + repeat % 3):
                launch()
            if first is None:
                first = [output.clone() for output in outputs]
            for output, wanted in zip(outputs, first):
                differs |= (output.view(torch.int16) != wanted.view(torch.int16)).any()
        torch.cuda.synchronize()
        dist.barrier()
        return self.side.error(), not differs.item()

    def end(self):
        self.give_back()
        self.group.close()
        dist.destroy_process_group()


def work(rank, ranks, store, library, pipe):
    own = Rank(rank, ranks, store, library)
    while (asked := pipe.recv()) is not None:
        method, row, what, number = asked
        try:
            own.take(row)
            pipe.send(getattr(own, method)(what, number))
        except (RuntimeError, AttributeError, TypeError, ImportError) as error:
            pipe.send(str(error).splitlines()[0])
    own.end()


class Ranks:
    """All of them, for who asks. An answer that is a text says why there is none."""

    def __init__(self, ranks, library):
        context = processes.get_context("spawn")
        store = tempfile.mktemp()
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            here, there = context.Pipe()
            process = context.Process(target=work, args=(rank, ranks, store, library, there),
                                      daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def ask(self, method, row, what, number):
        for pipe in self.pipes:
            pipe.send((method, row, what, number))
        return [pipe.recv() for pipe in self.pipes]

    def seconds(self, row, what, runs):
        """The slowest rank's."""
        answers = self.ask("seconds", row, what, runs)
        return next((each for each in answers if isinstance(each, str)), None) or max(answers)

    def check(self, row, what, repeats):
        """The worst rank's error, and whether all runs of all had the same bits."""
        answers = self.ask("check", row, what, repeats)
        failed = [each for each in answers if isinstance(each, str)]
        if failed:
            return failed[0]
        return max(error for error, _ in answers), all(alike for _, alike in answers)

    def end(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(20)


def medians(ranks, row, names, runs, rounds):
    """Of each that is timed, in rounds of all of them: seconds, or why there are none."""
    times = {}
    for _ in range(rounds):
        for name in names:
            times.setdefault(name, []).append(ranks.seconds(row, name, runs))
    return {name: next((each for each in all_of if isinstance(each, str)),
                       None) or statistics.median(all_of) for name, all_of in times.items()}


def text_of(seconds):
    return f"{seconds * 1e6:9.1f}" if isinstance(seconds, float) else f"{'none':>9}"

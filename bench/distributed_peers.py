"""cuBLAS and FlashAttention-3 with NCCL, and PyTorch's symmetric-memory operations: one process for
each GPU, as their users run them. The process that starts them says what is timed."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from attention_peers import AttentionSide

ATTENTION = "sequence_parallel_attention"
SLEEP_CYCLES = 20_000_000  # the GPU waits while the host queues a round


def seconds_a_run(launch, runs, device):
    """Of many in a row, by the GPU's clock; queued before the GPU is there."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SLEEP_CYCLES)
    start.record()
    for _ in range(runs):
        launch()
    end.record()
    torch.cuda.synchronize(device)
    return start.elapsed_time(end) * 1e-3 / runs


class Side:
    """What one rank has of a row."""

    def __init__(self, operation, m, n, k, ranks, device):
        def normal(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)

        def empty(*shape):
            return torch.empty(*shape, device=device, dtype=torch.bfloat16)

        self.operation = operation
        if operation == "gemm_reduce_scatter":
            self.a, self.b = normal(m, k // ranks), normal(n, k // ranks)
            self.product, self.c = empty(m, n), empty(m // ranks, n)
        else:
            self.a, self.b = normal(m // ranks, k), normal(n // ranks, k)
            self.all_a, self.product = empty(m, k), empty(m, n // ranks)

    def launches(self, group):
        scatters = self.operation == "gemm_reduce_scatter"

        def collective():
            if scatters:
                dist.reduce_scatter_tensor(self.c, self.product)
            else:
                dist.all_gather_into_tensor(self.all_a, self.a)

        def gemm():
            torch.mm(self.a if scatters else self.all_a, self.b.T, out=self.product)

        def in_turn():
            first, second = (gemm, collective) if scatters else (collective, gemm)
            first()
            second()

        def fused():
            if scatters:
                torch.ops.symm_mem.fused_matmul_reduce_scatter(self.a, self.b.T, "sum", 0, group)
            else:
                torch.ops.symm_mem.fused_all_gather_matmul(self.a, [self.b.T], 0, group)

        return {"gemm": gemm, "collective": collective, "in turn": in_turn, "fused": fused}


class ExchangeSide:
    """The same of an operation that multiplies nothing. NCCL exchanges parts that lie in one piece:
    heads are packed before it, or behind it on the way back, by a copy on the GPU."""

    def __init__(self, operation, rows, heads, columns, ranks, device):
        def normal(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)

        self.operation, self.ranks = operation, ranks
        if operation.startswith("all_to_all"):
            self.tokens = normal(rows, ranks, heads // ranks, columns)
            self.packed = normal(ranks, rows, heads // ranks, columns)
            self.other = torch.empty_like(self.packed)
        elif operation in ("all_gather", "reduce_scatter"):
            self.one, self.many = normal(rows), normal(ranks * rows)
        else:
            self.one = normal(rows)

    def launches(self, _):
        def collective():
            if self.operation.startswith("all_to_all"):
                dist.all_to_all_single(self.other, self.packed)
            elif self.operation == "all_gather":
                dist.all_gather_into_tensor(self.many, self.one)
            elif self.operation == "reduce_scatter":
                dist.reduce_scatter_tensor(self.one, self.many)
            elif self.operation == "all_reduce":
                dist.all_reduce(self.one)
            else:
                dist.broadcast(self.one, 0)

        def in_turn():
            if self.operation == "all_to_all":
                self.packed.copy_(self.tokens.transpose(0, 1))
            collective()
            if self.operation == "all_to_all_back":
                self.tokens.transpose(0, 1).copy_(self.other)

        return {"collective": collective, "in turn": in_turn}


def side_of(row, ranks, device):
    if row[0] == ATTENTION:
        return AttentionSide(*row[1:], ranks, device)
    multiplies = row[0] in ("gemm_reduce_scatter", "all_gather_gemm")
    return (Side if multiplies else ExchangeSide)(*row, ranks, device)


def work(rank, ranks, store, pipe):
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=ranks,
                            device_id=device)
    group = dist.group.WORLD.group_name
    try:
        from torch.distributed._symmetric_memory import enable_symm_mem_for_group
        enable_symm_mem_for_group(group)
    except (ImportError, RuntimeError) as error:
        print(f"rank {rank}: no symmetric memory: {error}", flush=True)
    row, launches = None, None
    while True:
        asked = pipe.recv()
        if asked is None:
            break
        wanted, what, runs = asked
        if wanted != row:
            row, launches = wanted, side_of(wanted, ranks, device).launches(group)
        try:
            dist.barrier()
            seconds_a_run(launches[what], 2, device)  # first calls allocate
            dist.barrier()
            pipe.send(seconds_a_run(launches[what], runs, device))
        except (RuntimeError, AttributeError, TypeError) as error:
            pipe.send(str(error).splitlines()[0])
    dist.destroy_process_group()


class Peers:
    def __init__(self, ranks):
        context = processes.get_context("spawn")
        store = tempfile.mktemp()
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            here, there = context.Pipe()
            process = context.Process(target=work, args=(rank, ranks, store, there), daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def seconds(self, row, what, runs):
        """The slowest rank's, or why there is none."""
        for pipe in self.pipes:
            pipe.send((row, what, runs))
        answers = [pipe.recv() for pipe in self.pipes]
        failed = [answer for answer in answers if isinstance(answer, str)]
        return failed[0] if failed else max(answers)

    def end(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(20)

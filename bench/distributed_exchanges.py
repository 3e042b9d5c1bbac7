"""Exchanges and collectives over ranks: the rows of gpu_distributed.py that multiply nothing."""

import statistics

import torch

import measure

OPERATIONS = ("all_to_all", "all_to_all_back", "all_gather", "reduce_scatter", "all_reduce",
              "broadcast")
SIZES = "1 38 256".split()  # MiB: the larger of what a rank passes and what it gets
SCHEDULES = {"all_to_all": ("push", "copy"), "all_to_all_back": ("push", "copy"),
             "all_gather": ("push",), "reduce_scatter": ("push",),
             "all_reduce": ("one_shot", "two_shots"), "broadcast": ("one_shot", "two_shots")}
# Of the packed Q, K and V: 8 KiB for each token. O has as many.
HEADS, KV_HEADS, DIM = 16, 8, 128
MIB = 1 << 20


class Exchange:
    """One row: the tensors of all ranks, and what the results should be, bit by bit."""

    def __init__(self, operation, mib, gpus):
        self.operation, self.gpus, self.size = operation, gpus, f"{mib} MiB"
        elements = int(float(mib) * MIB) // 2
        self.root = {"root": 0} if operation == "broadcast" else {}
        self.heads = {}
        if operation == "all_to_all":
            tokens = elements // ((HEADS + 2 * KV_HEADS) * DIM)
            self.heads = {"heads": HEADS, "kv_heads": KV_HEADS, "dim": DIM, "dim_v": DIM}
            shapes = [(1, tokens, heads, DIM) for heads in (HEADS, KV_HEADS, KV_HEADS)]
            results = [(1, tokens * gpus, shape[2] // gpus, DIM) for shape in shapes]
        elif operation == "all_to_all_back":
            heads = HEADS + 2 * KV_HEADS
            tokens = elements // (heads * DIM)
            self.heads = {"heads": heads, "dim_v": DIM}
            shapes = [(1, tokens * gpus, heads // gpus, DIM)]
            results = [(1, tokens, heads, DIM)]
        else:
            part = elements // gpus
            shapes = [{"all_gather": (part,), "reduce_scatter": (gpus, part)}.get(
                operation, (elements,))]
            results = [{"all_gather": (gpus, part), "reduce_scatter": (part,)}.get(
                operation, (elements,))]
        self.inputs = [[torch.randn(*shape, device=gpu, dtype=torch.bfloat16) for shape in shapes]
                       for gpu in range(gpus)]
        self.results = [[torch.empty(*shape, device=gpu, dtype=torch.bfloat16)
                         for shape in results] for gpu in range(gpus)]
        # Of what leaves a rank, as little as can be.
        share = {"all_reduce": 2 * (gpus - 1) / gpus, "broadcast": 1}.get(operation,
                                                                          (gpus - 1) / gpus)
        self.crossing = share * elements * 2
        self.runs = max(10, min(100, int(2e10 / (elements * 2))))

    def bind(self, library, schedule):
        options = {**self.heads, **self.root, "ranks": self.gpus}
        if schedule:
            options["schedule"] = schedule
        kernel = library.kernel(self.operation, **options)
        tensors = [i + r for i, r in zip(self.inputs, self.results)]
        return kernel.bind_on_gpus(*tensors)

    def peer_sizes(self):
        """What PyTorch exchanges: rows of as many heads, or a vector."""
        shape = self.inputs[0][0].shape
        if self.operation == "all_to_all":
            return shape[1], HEADS + 2 * KV_HEADS, DIM
        if self.operation == "all_to_all_back":
            return self.results[0][0].shape[1:]
        return shape[-1], 1, 1

    def wanted(self, rank):
        """On the rank's GPU."""
        def here(number=0):
            return [of_rank[number].to(rank) for of_rank in self.inputs]

        if self.operation == "all_to_all":
            return [torch.cat([own.chunk(self.gpus, 2)[rank] for own in here(number)], 1)
                    for number in range(3)]
        if self.operation == "all_to_all_back":
            return [torch.cat([own.chunk(self.gpus, 1)[rank] for own in here()], 2)]
        if self.operation == "all_gather":
            return [torch.stack(here())]
        if self.operation == "broadcast":
            return [here()[0]]
        parts = here() if self.operation == "all_reduce" else [own[rank] for own in here()]
        total = torch.zeros_like(parts[0], dtype=torch.float32)
        for part in parts:  # in the order of the ranks
            total += part.float()
        return [total.bfloat16()]

    def poison(self):
        for results in self.results:
            measure.poison(results)

    def synchronize(self):
        for gpu in range(self.gpus):
            torch.cuda.synchronize(gpu)

    def wrong_elements(self):
        wrong = 0
        for rank, results in enumerate(self.results):
            for result, wanted in zip(results, self.wanted(rank)):
                wrong += (result.view(torch.int16) != wanted.view(torch.int16)).sum().item()
        return wrong

    def runs_alike(self, launch, repeats):
        """Also where a rank comes late, or works on while the other is in the next run."""
        wanted = [self.wanted(rank) for rank in range(self.gpus)]
        for repeat in range(repeats):
            for gpu in range(self.gpus):
                with torch.cuda.device(gpu):
                    measure.poison(self.results[gpu])
                    if (repeat + gpu) % 3 == 0:
                        torch.cuda._sleep(10_000 * (1 + repeat % 7))
            for _ in range(1 + repeat % 3):
                launch()
            seen = []
            for gpu in range(self.gpus):  # by each GPU behind its own runs, without waiting
                with torch.cuda.device(gpu):
                    seen += [(result.view(torch.int16) != right.view(torch.int16)).any()
                             for result, right in zip(self.results[gpu], wanted[gpu])]
            if any(each.item() for each in seen):
                return False
        return True


def measure_exchange(library, row, arguments, peers, rate, seconds_on_gpus):
    """The best part of the link's rate, and whether a result was wrong."""
    launches = {name: row.bind(library, name)
                for name in arguments.schedules or SCHEDULES[row.operation]}
    checked = {}
    for name, launch in launches.items():
        row.poison()
        row.synchronize()
        launch()
        row.synchronize()
        checked[name] = row.wrong_elements(), row.runs_alike(launch, arguments.repeats)
    times = {}
    for _ in range(arguments.rounds):
        for name, launch in launches.items():
            seconds_on_gpus(launch, 2, row.gpus)
            times.setdefault(name, []).append(seconds_on_gpus(launch, row.runs, row.gpus))
        for what in ("collective", "in turn") if peers else ():
            seconds = peers.seconds((row.operation, *row.peer_sizes()), what, row.runs)
            times.setdefault(what, []).append(seconds)
    times = {name: statistics.median(seconds) if not isinstance(seconds[0], str) else seconds[0]
             for name, seconds in times.items()}
    wire = row.crossing / rate
    best, bad = 0, False
    for name in launches:
        wrong, alike = checked[name]
        bad = bad or wrong != 0 or not alike
        best = max(best, wire / times[name])
        columns = [times[name], wire, times.get("collective"), times.get("in turn")]
        print(f"{row.operation:>16} {row.size:>8} {name:>10} "
              + " ".join(f"{1e6 * t:9.1f}" if isinstance(t, float) else f"{'none':>9}"
                         for t in columns)
              + f" {wire / times[name]:6.3f} {wrong:8} {'yes' if alike else 'NO'}", flush=True)
    for what, answer in times.items():
        if isinstance(answer, str):
            print(f"  {what}: {answer}")
    return best, bad


HEADER = (f"{'':>16} {'a rank':>8} {'ours':>10} {'time':>9} {'wire':>9} {'NCCL':>9} "
          f"{'repacked':>9} {'part':>6} {'wrong':>8} same bits")

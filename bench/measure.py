"""Two implementations of one operation in one process: checked first, then timed in pairs."""

import dataclasses
import math
import statistics
import subprocess

import torch

FLUSH_BYTES = 256 << 20  # several times the L2 cache
SLEEP_CYCLES = 1_000_000  # the GPU waits about half a millisecond while the host queues
LONGEST_SLEEP = 1 << 28  # cycles: more than a tenth of a second


def add_arguments(parser):
    parser.add_argument("--library", default="build/release/lib/libtilewright.so")
    parser.add_argument("--rounds", type=int, default=40, help="pairs of runs for each row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schedule", help="of ours; tile for the automatic one")


def schedule_of(arguments):
    return {"schedule": arguments.schedule} if arguments.schedule else {}


def device_state():
    query = "name,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"
    try:
        answer = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                                capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"nvidia-smi: {error}"
    return answer.stdout.strip().splitlines()[torch.cuda.current_device()]


def print_versions(library):
    print(f"Tilewright {library.version()}, PyTorch {torch.__version__}, "
          f"CUDA {torch.version.cuda}, "
          f"cuDNN {torch.backends.cudnn.version()}")
    print(f"device: {device_state()}")


def relative_rms(values, reference):
    difference = (values.double() - reference).square().mean().sqrt()
    return (difference / reference.square().mean().sqrt()).item()


def poison(tensors):
    for tensor in tensors:
        tensor.fill_(math.nan)


def runs_alike(launch, outputs, repeats=3):
    """Whether every run writes the same bits, over whatever was in the outputs before."""
    first = [output.clone() for output in outputs]
    for _ in range(repeats):
        poison(outputs)
        launch()
        torch.cuda.synchronize()
        for output, wanted in zip(outputs, first):
            if not torch.equal(output.view(torch.uint8), wanted.view(torch.uint8)):
                return False
    return True


@dataclasses.dataclass
class Pairs:
    ours: float  # seconds, median
    peer: float
    ratio: float  # median of peer / ours: above 1 ours is the faster
    low: float  # the middle 80% of the ratios
    high: float


class Queue:
    """Runs on the GPU, each with a cold L2 cache, and queued before the GPU is there.

    A run that the host queues too slowly would be charged with the host's time. Such a run is made
    again, behind a longer wait."""

    def __init__(self, sleep_cycles=SLEEP_CYCLES, clean=False):
        """`clean`: the cache holds nothing that memory has yet to be given, which would take a part
        of the bandwidth from a run that does little but read."""
        self.sleep_cycles = sleep_cycles
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self.read = torch.zeros(FLUSH_BYTES // 4, device="cuda") if clean else None

    def run(self, launch):
        """The events before and behind the run."""
        while True:
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(self.sleep_cycles)
            self.flush.zero_()
            if self.read is not None:
                self.read.max()
            start.record()
            launch()
            end.record()
            if not start.query():
                return start, end
            if self.sleep_cycles >= LONGEST_SLEEP:
                raise RuntimeError("the host takes longer to queue a run than the GPU waits")
            torch.cuda.synchronize()
            self.sleep_cycles *= 2


def time_pairs(ours, peer, rounds):
    """Both in every round, as in time_rounds, and the ratios of the rounds."""
    for _ in range(5):
        ours()
        peer()
    seconds = time_rounds({"ours": ours, "peer": peer}, rounds)
    ratios = sorted(b / a for a, b in zip(seconds["ours"], seconds["peer"]))
    tail = rounds // 10
    return Pairs(statistics.median(seconds["ours"]), statistics.median(seconds["peer"]),
                 statistics.median(ratios), ratios[tail], ratios[-1 - tail])


def time_rounds(launches, rounds, sleep_cycles=SLEEP_CYCLES, clean=False):
    """The times of each in every round, in seconds; a round runs all of them."""
    queue = Queue(sleep_cycles, clean)
    for launch in launches.values():
        launch()
    torch.cuda.synchronize()
    seconds = {name: [] for name in launches}
    order = list(launches)
    for index in range(rounds):
        # Nobody always follows the same one: neither always finds the cooler chip.
        events = {name: queue.run(launches[name])
                  for name in (order[::-1] if index % 2 else order)}
        torch.cuda.synchronize()
        for name, (start, end) in events.items():
            seconds[name].append(start.elapsed_time(end) * 1e-3)
    return seconds


def time_all(launches, rounds):
    """The median time of each, in seconds."""
    seconds = time_rounds(launches, rounds, SLEEP_CYCLES // 4)
    return {name: statistics.median(times) for name, times in seconds.items()}


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))

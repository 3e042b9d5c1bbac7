#!/usr/bin/env python3
"""kv_append: how near it comes to a copy of as many bytes.

    bench/gpu_kv_append.py --library build/release/lib/libtilewright.so

TB/s count what is read, and what is written. `copy` is PyTorch's copy of the keys and values, or of
the latent rows (kv_append_mla), to memory that lies side by side.
"""

import argparse
import statistics
import sys

import torch

import measure
import tilewright_c

HEADS, DIM, PAGE = 8, 128, 16
LATENT = 576


class Problem:
    """Tokens of 16 sequences, in order, whose pages are in any order."""

    def __init__(self, tokens, cache):
        self.quantised, self.latent = cache == "e4m3", cache == "latent"
        batch = 16
        each = tokens // batch
        columns = -(-each // PAGE)
        dtype = torch.float8_e4m3fn if self.quantised else torch.bfloat16
        row = (LATENT,) if self.latent else (HEADS, DIM)
        self.table = torch.randperm(batch * columns, device="cuda").view(batch, columns).int()
        number = torch.arange(tokens, device="cuda", dtype=torch.int32)
        self.sequences, self.positions = number // each, number % each
        self.new = [torch.randn((tokens, *row), device="cuda", dtype=torch.bfloat16)
                    for _ in range(1 if self.latent else 2)]
        self.scales = [torch.full((HEADS,), 0.02, device="cuda") for _ in range(2)]
        self.caches = [torch.zeros((batch * columns, PAGE, *row), device="cuda").to(dtype)
                       for _ in self.new]
        self.copies = [torch.empty_like(new, dtype=dtype) for new in self.new]

    def bytes(self):
        return sum(new.numel() * (2 + cache.element_size())
                   for new, cache in zip(self.new, self.caches))

    def launch(self, library):
        if self.latent:
            kernel = library.kernel("kv_append_mla", dim=LATENT, page=PAGE)
        else:
            kernel = library.kernel("kv_append_fp8" if self.quantised else "kv_append",
                                    kv_heads=HEADS, dim=DIM, page=PAGE)
        return kernel.bind(*self.new, self.sequences, self.positions, self.table,
                           *(self.scales if self.quantised else ()), *self.caches)

    def copy(self):
        for to, new in zip(self.copies, self.new):
            to.copy_(new)

    def is_right(self):
        rows = (self.table[self.sequences.long(), self.positions.long() // PAGE].long(),
                self.positions.long() % PAGE)
        for new, cache, scale in zip(self.new, self.caches, self.scales):
            wanted = (new.float() / scale[:, None]).to(cache.dtype) if self.quantised else new
            bits = torch.uint8 if self.quantised else torch.int16
            if not torch.equal(cache.view(bits)[rows], wanted.view(bits)):
                return False
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_arguments(parser)
    parser.add_argument("--tokens", nargs="+", type=int, default=[128, 8192, 131072])
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    library = tilewright_c.Library(arguments.library)
    measure.print_versions(library)
    failures = 0
    for tokens in arguments.tokens:
        for cache in ("bf16", "e4m3", "latent"):
            problem = Problem(tokens, cache)
            launches = {"ours": problem.launch(library), "copy": problem.copy}
            launches["ours"]()
            torch.cuda.synchronize()
            is_right = problem.is_right()
            failures += not is_right
            seconds = measure.time_rounds(launches, arguments.rounds)
            cells = [f"{name} {problem.bytes() / statistics.median(times) * 1e-12:5.3f} TB/s "
                     f"{statistics.median(times) * 1e6:7.1f} us" for name, times in seconds.items()]
            share = statistics.median(seconds["copy"]) / statistics.median(seconds["ours"])
            print(f"{tokens:7} tokens {cache:6}  {' | '.join(cells)}  "
                  f"{share:.2f} of the copy{'' if is_right else '  wrong'}", flush=True)
    print(f"device: {measure.device_state()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

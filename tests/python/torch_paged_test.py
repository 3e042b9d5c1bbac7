"""attention_paged and flash_attn_with_kvcache on the target cpu against float64."""

import inspect
import unittest

import torch
import torch_reference as reference
from tilewright.torch import (
    attention_fp8,
    attention_paged,
    attention_paged_mla,
    attention_paged_plan,
    flash_attn,
    flash_attn_interface,
    kv_append,
    kv_append_mla,
    merge_states,
)
from torch_reference import normal, opcheck, require_close, require_refusal

LENGTHS = [37, 0, 16, 50]
PAGE = 16


def numbers(values):
    return torch.tensor(values, dtype=torch.int32)


def paged(dense, lengths, seed=7):
    """Pages in any order, and their table; NaN in all slots that hold no key."""
    most = -(-max(max(lengths), 1) // PAGE)
    generator = torch.Generator().manual_seed(seed)
    table = torch.randperm(len(lengths) * most, generator=generator).view(len(lengths), most)
    cache = torch.full((len(lengths) * most, PAGE, *dense.shape[2:]), torch.nan, dtype=dense.dtype)
    for b, length in enumerate(lengths):
        for j in range(length):
            cache[table[b, j // PAGE], j % PAGE] = dense[b, j]
    return cache, table.int()


class Paged(unittest.TestCase):
    def setUp(self):
        torch.use_deterministic_algorithms(True)  # what memory holds before is NaN then
        self.addCleanup(torch.use_deterministic_algorithms, False)

    def check(self, queries, dtype, **options):
        q = normal(4, queries, 4, 32, dtype=dtype)
        dense = [normal(4, 50, 2, 32, dtype=dtype, seed=seed) for seed in (1, 2)]
        (k, table), (v, _) = (paged(t, LENGTHS) for t in dense)
        out, lse = attention_paged(q, k, v, table, numbers(LENGTHS), return_lse=True, **options)
        for b, length in enumerate(LENGTHS):
            wanted = reference.attention(q[b:b + 1], *(t[b:b + 1, :length] for t in dense),
                                         **options)
            require_close(self, f"out {b}", out[b:b + 1], wanted[0], dtype)
            require_close(self, f"lse {b}", lse[b:b + 1], wanted[1], dtype)
        return q, k, v, table, out, lse

    def test_decoding(self):
        for dtype in (torch.float32, torch.bfloat16):
            for options in ({}, {"sinks": normal(4)}, {"scale": 0.3, "softcap": 1.5}):
                with self.subTest(dtype=dtype, **options):
                    self.check(1, dtype, **options)

    def test_chunks_of_prompts(self):
        q, k, v, table, out, lse = self.check(5, torch.float32, causal=True, window=20)
        packed = attention_paged(q.flatten(0, 1), k, v, table, numbers(LENGTHS), causal=True,
                                 window=20, cu_seqlens=numbers([0, 5, 10, 15, 20]),
                                 return_lse=True)
        self.assertTrue(torch.equal(packed[0].view_as(out), out))
        self.assertTrue(torch.equal(packed[1].unflatten(1, (4, 5)).transpose(0, 1), lse))

    def test_queries_of_no_sequence(self):
        q = normal(9, 4, 32)
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        out, lse = attention_paged(q, k, k, table, numbers(LENGTHS), return_lse=True,
                                   cu_seqlens=numbers([0, 2, 4, 5, 7]))
        self.assertTrue((out[7:] == 0).all() and (lse[:, 7:] == -torch.inf).all())
        self.assertTrue(lse[:, 4:7].isfinite().all())

    def test_heads_before_slots(self):
        q = normal(4, 1, 4, 32)
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        wanted = attention_paged(q, k, k, table, numbers(LENGTHS))
        other = k.transpose(1, 2).contiguous().transpose(1, 2)
        self.assertTrue(torch.equal(attention_paged(q, other, other, table, numbers(LENGTHS)),
                                    wanted))

    def test_scales_of_e4m3(self):
        q = normal(4, 3, 4, 32)
        dense = [normal(4, 50, 2, 32, seed=seed).to(torch.float8_e4m3fn) for seed in (1, 2)]
        (k, table), (v, _) = (paged(t, LENGTHS) for t in dense)
        for scales in ((torch.tensor([0.5, 3.0]), torch.tensor([0.25, 2.0])),
                       (torch.tensor([0.5, 3.0]), torch.tensor([2.0])),
                       (torch.tensor(0.5), torch.tensor([2.0]))):
            out = attention_paged(q, k, v, table, numbers(LENGTHS), causal=True, k_scale=scales[0],
                                  v_scale=scales[1])
            keys, values = (t.float() * scale.expand(2)[:, None]
                            for t, scale in zip(dense, scales))
            for b, length in enumerate(LENGTHS):
                wanted = reference.attention(q[b:b + 1], keys[b:b + 1, :length],
                                             values[b:b + 1, :length], causal=True)
                require_close(self, f"out {b}", out[b:b + 1], wanted[0], torch.float32)
        require_refusal(self, lambda: attention_paged(q, k, v, table, numbers(LENGTHS)), "k_scale",
                        "float32")
        require_refusal(self, lambda: attention_paged(q, k, v, table, numbers(LENGTHS),
                                                      k_scale=torch.ones(3), v_scale=scales[1]),
                        "k_scale is {3}", "k has 2 heads")
        require_refusal(self, lambda: attention_paged(q, q[:, :, :2], q[:, :, :2], table,
                                                      numbers(LENGTHS), k_scale=torch.ones(2)),
                        "k_scale is given")

    def test_opcheck(self):
        q = normal(4, 4, 32)
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        k = k.nan_to_num()
        for given in ((q, k, k, numbers([0, 1, 2, 3, 4])), (q[:, None], k, k, None)):
            opcheck(torch.ops.tilewright.attention_paged.default,
                    (*given, numbers(LENGTHS), table, None, None, False, 0, 0.0, 0.0, 0, None, ""))
        opcheck(
            torch.ops.tilewright.attention_paged_plan.default,
            (numbers([0, 1, 2, 3, 4]), numbers(LENGTHS), 4, 2, 0, 0, False, ""))

    def test_one_plan_for_several_layers(self):
        lengths = numbers(LENGTHS)
        for options in ({}, {"fixed_split_size": 64}):
            plan = attention_paged_plan(lengths, heads=4, kv_heads=2, **options)
            self.assertEqual(plan[0], -1)  # no tile has several parts
            for layer in range(2):
                q = normal(4, 1, 4, 32, seed=layer)
                k, table = paged(normal(4, 50, 2, 32, seed=layer + 5), LENGTHS)
                for sinks in (None, normal(4)):
                    given = {"sinks": sinks, **options}
                    out = attention_paged(q, k, k, table, lengths, plan=plan, **given)
                    self.assertTrue(torch.equal(
                        out, attention_paged(q, k, k, table, lengths, **given)))
        # Of 2,000 keys a window of 50 leaves one part.
        long = numbers([2000, 2000])
        wide, narrow = (attention_paged_plan(long, heads=4, kv_heads=2, fixed_split_size=64,
                                             window=window) for window in (None, 50))
        self.assertLess(narrow[-1], wide[-1])
        self.assertEqual(wide[0], 0)
        require_refusal(self, lambda: attention_paged(q, k, k, table, lengths, plan=plan[:4]),
                        "plan is 4", "5")
        require_refusal(self, lambda: attention_paged_plan(numbers([3, -5]), heads=4, kv_heads=2),
                        "lengths has -5", "at least 0")
        require_refusal(self, lambda: attention_paged_plan(lengths, heads=4, kv_heads=2, window=0),
                        "window is 0", "at least 1")
        require_refusal(self, lambda: attention_paged_plan(lengths, heads=4, kv_heads=3),
                        "heads 4 is not a multiple of kv_heads 3")

    def test_a_sequence_alone_has_the_bits_that_it_has_among_others(self):
        lengths = [150, 7, 0, 40]
        q = normal(4, 2, 4, 32)
        k, table = paged(normal(4, 150, 2, 32, seed=1), lengths)
        out = attention_paged(q, k, k, table, numbers(lengths), fixed_split_size=64)
        for b, length in enumerate(lengths):
            own = attention_paged(q[b:b + 1], k, k, table[b:b + 1], numbers([length]),
                                  fixed_split_size=64)
            self.assertTrue(torch.equal(out[b:b + 1], own), b)
        require_refusal(self, lambda: attention_paged(q, k, k, table, numbers(lengths),
                                                      fixed_split_size=100),
                        "fixed_split_size is 100", "a multiple of 64")

    def test_refusals(self):
        q = normal(4, 1, 4, 32)
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        lengths = numbers(LENGTHS)
        last = table.clone()
        last[0, 2] = 16  # of its 37 keys the last page alone
        for call, *parts in (
                (lambda: attention_paged(q, k, k, last, lengths), "block_table has 16",
                 "there are 16 pages"),
                (lambda: attention_paged(q, k, k, table.long(), lengths), "block_table",
                 "torch.int64"),
                (lambda: attention_paged(q, k, k, table[:3], lengths), "block_table is 3", "4"),
                (lambda: attention_paged(q[:3], k, k, table, lengths), "batch of q is 3", "4"),
                (lambda: attention_paged(q, k, k[:, :8], table, lengths), "page of v is 8", "16"),
                (lambda: attention_paged(q, k, k[:3], table, lengths),
                 "number of pages of v is 3", "16"),
                (lambda: attention_paged(q, k, k, table, lengths[:, None]), "lengths has 2 axes"),
                (lambda: attention_paged(q, k, k, table, lengths, window=3), "window is 3"),
                (lambda: attention_paged(q.requires_grad_(), k, k, table, lengths).sum().backward(),
                 "attention_paged has no gradients")):
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)


class Cache(unittest.TestCase):
    def setUp(self):
        self.q, self.new = normal(3, 2, 4, 32), [normal(3, 2, 2, 32, seed=s) for s in (4, 5)]
        self.dense = [normal(3, 40, 2, 32, seed=s) for s in (1, 2)]
        self.lengths = [30, 3, 11]

    def require(self, out, lse, causal=True):
        for b, length in enumerate(self.lengths):
            keys = [torch.cat([t[b:b + 1, :length], new[b:b + 1]], 1)
                    for t, new in zip(self.dense, self.new)]
            wanted = reference.attention(self.q[b:b + 1], *keys, causal=causal)
            require_close(self, "out", out[b:b + 1], wanted[0], torch.float32)
            require_close(self, "lse", lse[b:b + 1], wanted[1], torch.float32)

    def test_new_keys_join_the_cache(self):
        for package in (flash_attn, flash_attn_interface):
            caches = [t.clone() for t in self.dense]
            for b, length in enumerate(self.lengths):
                for cache in caches:
                    cache[b, length:] = torch.nan
            self.require(*package.flash_attn_with_kvcache(
                self.q, *caches, *self.new, cache_seqlens=numbers(self.lengths), causal=True,
                return_softmax_lse=True))
            self.assertTrue(torch.equal(caches[0][1, 3:5], self.new[0][1]))

    def test_pages(self):
        for package, name in ((flash_attn, "block_table"), (flash_attn_interface, "page_table")):
            filled = [length + 2 for length in self.lengths]
            (k, table), (v, _) = (paged(t, filled) for t in self.dense)
            self.require(*package.flash_attn_with_kvcache(
                self.q, k, v, *self.new, cache_seqlens=numbers(self.lengths), causal=True,
                return_softmax_lse=True, **{name: table}))

    def test_a_full_cache_and_its_settings(self):
        k, table = paged(self.dense[0][:, :32], [32] * 3)
        options = {"scale": 0.3, "softcap": 1.5}
        wanted, _ = reference.attention(self.q, *[self.dense[0][:, :32]] * 2, **options)
        for package, name in ((flash_attn, "block_table"), (flash_attn_interface, "page_table")):
            ours = package.flash_attn_with_kvcache(self.q, k, k, softmax_scale=0.3, softcap=1.5,
                                                   **{name: table})
            require_close(self, "out", ours, wanted, torch.float32)

    def test_a_number_and_a_choice_of_rows(self):
        rows = numbers([2, 0, 1])
        ours = flash_attn.flash_attn_with_kvcache(self.q, *self.dense, cache_seqlens=20,
                                                  cache_batch_idx=rows)
        wanted, _ = reference.attention(self.q, *(t[rows.long(), :20] for t in self.dense))
        require_close(self, "out", ours, wanted, torch.float32)

    def test_signatures(self):
        for package, names in (
                (flash_attn, "q k_cache v_cache k v rotary_cos rotary_sin cache_seqlens "
                 "cache_batch_idx cache_leftpad block_table softmax_scale causal window_size "
                 "softcap rotary_interleaved alibi_slopes num_splits return_softmax_lse"),
                (flash_attn_interface, "q k_cache v_cache k v qv rotary_cos rotary_sin "
                 "cache_seqlens cache_batch_idx cache_leftpad page_table cu_seqlens_q "
                 "cu_seqlens_k_new max_seqlen_q rotary_seqlens q_descale k_descale v_descale "
                 "softmax_scale causal window_size attention_chunk softcap rotary_interleaved "
                 "scheduler_metadata num_splits pack_gqa sm_margin return_softmax_lse")):
            parameters = inspect.signature(package.flash_attn_with_kvcache).parameters
            self.assertEqual(list(parameters), names.split())

    def test_refusals(self):
        attend = flash_attn.flash_attn_with_kvcache
        one = torch.ones(1)
        for name, call in (
                ("rotary_cos", lambda: attend(self.q, *self.dense, rotary_cos=one)),
                ("cache_leftpad", lambda: attend(self.q, *self.dense, cache_leftpad=one)),
                ("v is None", lambda: attend(self.q, *self.dense, self.new[0], cache_seqlens=3)),
                ("room for 40", lambda: attend(self.q, *self.dense, *self.new, cache_seqlens=39)),
                ("cu_seqlens_q", lambda: flash_attn_interface.flash_attn_with_kvcache(
                    self.q, *self.dense, cu_seqlens_q=one))):
            with self.subTest(name):
                require_refusal(self, call, name)


class Compiled(unittest.TestCase):
    """Each in one graph, whether it was called before or not; what is wrong is seen in a run."""

    def setUp(self):
        torch._dynamo.reset()

    def check(self, call, *given):
        compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="eager")
        ours, wanted = compiled(*given), call(*given)
        self.assertTrue(torch.equal(ours, wanted))
        self.assertTrue(torch.equal(compiled(*given), call(*given)))
        return compiled

    def test_attention(self):
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        q, lengths = normal(4, 1, 4, 32), numbers(LENGTHS)

        def step(q, lengths):
            plan = attention_paged_plan(lengths, heads=4, kv_heads=2)
            return attention_paged(q, k, k, table, lengths, plan=plan)

        compiled = self.check(step, q, lengths)
        require_refusal(self, lambda: compiled(q, lengths + 99), "lengths has", "room for")
        self.check(lambda q, lengths: attention_paged_mla(
            q, k[:, :, 0], table, lengths, scale=0.3, dim_v=16), q, lengths)

    def test_with_a_cache(self):
        q, cache, lengths = normal(2, 1, 4, 32), normal(4, 16, 2, 32, seed=1), numbers([5, 16])
        new, table = normal(2, 1, 2, 32, seed=2), numbers([[2, 0], [1, 3]])
        attend = flash_attn.flash_attn_with_kvcache
        for options in ({"cache_seqlens": 7},
                        {"cache_seqlens": lengths, "cache_batch_idx": numbers([3, 1])},
                        {"cache_seqlens": lengths, "block_table": table}):
            self.check(lambda q, how=options: attend(q, cache, cache, **how), q)
        self.check(lambda q, n: flash_attn_interface.flash_attn_with_kvcache(
            q, cache, cache, cache_seqlens=n, page_table=table, causal=True), q, lengths)

        def grown(q, new, lengths):
            k, v = cache.clone(), cache.clone()
            return attend(q, k, v, new, -new, cache_seqlens=lengths, block_table=table)

        compiled = self.check(grown, q, new, lengths)
        with self.assertRaises((IndexError, RuntimeError)):
            compiled(q, new, lengths + 99)


class Tables(unittest.TestCase):
    def test_of_one_axis(self):
        q = normal(4, 1, 4, 32)
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        used = [-(-length // PAGE) for length in LENGTHS]
        indptr = numbers([0, *torch.tensor(used).cumsum(0).tolist()])
        indices = torch.cat([row[:n] for row, n in zip(table, used)])
        wanted = attention_paged(q, k, k, table, numbers(LENGTHS))
        got = attention_paged(q, k, k, indices, numbers(LENGTHS), indptr=indptr)
        require_close(self, "out", got, wanted, torch.float32)
        require_refusal(self, lambda: attention_paged(q, k, k, indices, numbers([38, 0, 17, 50]),
                                                      indptr=indptr), "room for 16 keys")
        require_refusal(self, lambda: attention_paged(q, k, k, table, numbers(LENGTHS),
                                                      indptr=indptr),
                        "block_table has 2 axes", "pass {entries of all, with indptr}")
        require_refusal(self, lambda: attention_paged(q, k, k, indices, numbers(LENGTHS)),
                        "block_table has 1 axis", "pass {batch, most pages}")

    def test_bytes_of_another_name(self):
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        scale = torch.ones(2)
        for dtype, fix in ((torch.uint8, "k.view(torch.float8_e4m3fn)"),
                           (torch.float8_e5m2, "convert k to torch.bfloat16")):
            cache = k.to(torch.float8_e4m3fn).view(dtype)
            require_refusal(self, lambda cache=cache: attention_paged(
                normal(4, 1, 4, 32), cache, cache, table, numbers(LENGTHS), k_scale=scale,
                v_scale=scale), f"k has elements of {dtype}", fix)

    def test_latent_keys(self):
        dense = normal(4, 50, 1, 48, seed=1)
        kv, table = paged(dense, LENGTHS)
        for queries, options in ((1, {}), (3, {"causal": True})):
            q = normal(4, queries, 5, 48)
            out, lse = attention_paged_mla(q, kv[:, :, 0], table, numbers(LENGTHS), scale=0.2,
                                           dim_v=32, return_lse=True, **options)
            for b, length in enumerate(LENGTHS):
                rows = dense[b:b + 1, :length]
                wanted = reference.attention(q[b:b + 1], rows, rows[..., :32], scale=0.2,
                                             **options)
                require_close(self, f"out {b}", out[b:b + 1], wanted[0], torch.float32)
                require_close(self, f"lse {b}", lse[b:b + 1], wanted[1], torch.float32)
        plan = attention_paged_plan(numbers(LENGTHS), heads=5, kv_heads=1, latent=True)
        out = attention_paged_mla(q[:, :1], kv[:, :, 0], table, numbers(LENGTHS), scale=0.2,
                                  dim_v=32, plan=plan)
        self.assertEqual(out.shape, (4, 1, 5, 32))
        require_refusal(self, lambda: attention_paged_mla(
            q, kv[:, :, 0], table, numbers(LENGTHS), scale=0.2, dim_v=49),
            "dim_v is 49", "than that")


class Appending(unittest.TestCase):
    def places(self):
        """Two tokens of each sequence that has keys, behind these, and one that pads."""
        sequences = numbers([0, 0, 2, 2, 3, 3, 0])
        return sequences, numbers([37, 38, 16, 17, 48, 49, -1])

    def test_what_attention_reads(self):
        dense = [normal(4, 50, 2, 32, seed=seed) for seed in (1, 2)]
        (k, table), (v, _) = (paged(t, LENGTHS) for t in dense)
        sequences, positions = self.places()
        rows = [torch.stack([t[s, p] for s, p in zip(sequences, positions)]) for t in dense]
        for cache in (k, v):  # what stands there already is none of the appended
            cache[table[3, 3]] = torch.nan
        before = k.clone(), v.clone()
        kv_append(*rows, k, v, sequences, positions, table)
        for cache, was, t in zip((k, v), before, dense):
            wanted = was.clone()
            for s, p in zip(sequences[:-1], positions[:-1]):
                wanted[table[s, p // PAGE], p % PAGE] = t[s, p]
            self.assertTrue(torch.equal(cache.nan_to_num(9), wanted.nan_to_num(9)))

    def test_rotated_and_quantised(self):
        k, v = normal(7, 2, 32, seed=1), normal(7, 2, 32, seed=2)
        sequences, positions = self.places()
        table = torch.arange(16, dtype=torch.int32).view(4, 4)
        angles = torch.arange(64)[:, None] * torch.tensor([0.3, 0.05])
        cos_sin = torch.cat([angles.cos(), angles.sin()], -1)
        caches = [torch.zeros(16, PAGE, 2, 32) for _ in range(2)]
        kv_append(k, v, *caches, sequences, positions, table, cos_sin=cos_sin)
        low, high, rest = k.split([2, 2, 28], -1)
        cos, sin = (part[positions[:-1].long(), None] for part in cos_sin.split(2, -1))
        low, high, rest = low[:-1], high[:-1], rest[:-1]
        wanted = torch.cat([low * cos - high * sin, high * cos + low * sin, rest], -1)
        pages = table[sequences[:-1].long(), positions[:-1].long() // PAGE].long()
        slots = positions[:-1].long() % PAGE
        require_close(self, "rotated", caches[0][pages, slots], wanted, torch.float32)
        self.assertTrue(torch.equal(caches[1][pages, slots], v[:-1]))
        narrow = [torch.zeros(16, PAGE, 2, 32).to(torch.float8_e4m3fn) for _ in range(2)]
        scale = torch.tensor([0.01, 0.02])
        kv_append(k, v, *narrow, sequences, positions, table, k_scale=scale, v_scale=scale[:1])
        of_k = (k[:-1] / scale[:, None]).to(torch.float8_e4m3fn)
        self.assertTrue(torch.equal(narrow[0].float()[pages, slots], of_k.float()))

    def test_latent(self):
        rows, (sequences, positions) = normal(7, 48, seed=1), self.places()
        table = torch.arange(16, dtype=torch.int32).view(4, 4)
        angles = torch.arange(64)[:, None] * torch.tensor([0.3, 0.05])
        cos_sin = torch.cat([angles.cos(), angles.sin()], -1)
        pages = table[sequences[:-1].long(), positions[:-1].long() // PAGE].long()
        slots = positions[:-1].long() % PAGE
        plain, rotated = (torch.full((16, PAGE, 48), torch.nan) for _ in range(2))
        kv_append_mla(rows, plain, sequences, positions, table)
        self.assertTrue(torch.equal(plain[pages, slots], rows[:-1]))
        self.assertEqual(plain.isnan().sum(), (16 * PAGE - 6) * 48)
        kv_append_mla(rows, rotated, sequences, positions, table, cos_sin=cos_sin)
        rest, low, high = rows[:-1].split([44, 2, 2], -1)
        cos, sin = cos_sin[positions[:-1].long()].split(2, -1)
        wanted = torch.cat([rest, low * cos - high * sin, high * cos + low * sin], -1)
        require_close(self, "rotated", rotated[pages, slots], wanted, torch.float32)
        for call, said in (
                (lambda: kv_append_mla(rows, plain[..., :40], sequences, positions, table),
                 "the dim of kv_cache is 40"),
                (lambda: kv_append_mla(rows.bfloat16(), plain, sequences, positions, table),
                 "kv has elements of torch.bfloat16, and kv_cache of torch.float32"),
                (lambda: kv_append_mla(rows, plain, sequences, positions, table,
                                       cos_sin=normal(64, 50)), "kv has rows of 48"),
                (lambda: kv_append_mla(rows, plain, sequences, positions, table + 90),
                 "there are 16 pages")):
            require_refusal(self, call, said)

    def test_refuses(self):
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        rows, (sequences, positions) = normal(7, 2, 32), self.places()
        for call, said in (
                (lambda: kv_append(rows, rows, k[..., :16], k, sequences, positions, table),
                 "the dim of k_cache is 16"),
                (lambda: kv_append(rows, rows, k, k, sequences[:3], positions, table),
                 "number of tokens of sequences is 3"),
                (lambda: kv_append(rows, rows, k, k, sequences, positions + 30, table),
                 "positions has 67, of 64"),
                (lambda: kv_append(rows, rows, k, k, sequences, positions, table + 90),
                 "there are 16 pages"),
                (lambda: kv_append(rows, rows, k, k, sequences, positions, table * 0 + 16),
                 "block_table has 16, and there are 16 pages"),
                (lambda: kv_append(rows, rows[:6], k, k, sequences, positions, table),
                 "number of tokens of v is 6"),
                (lambda: kv_append(rows, rows, k, k, sequences, positions, table,
                                   cos_sin=normal(49, 4)), "positions has 49, of 49"),
                (lambda: kv_append(rows, rows, k, k, sequences, positions, table,
                                   k_scale=torch.ones(2)), "k_scale is given, and k_cache is of"),
                (lambda: kv_append(rows, rows, k.mT.contiguous().mT, k, sequences, positions,
                                   table), "k_cache has the strides")):
            require_refusal(self, call, said)


    def test_refuses_two_tokens_of_one_slot(self):
        k, table = paged(normal(4, 50, 2, 32, seed=1), LENGTHS)
        rows, cache = normal(2, 2, 32), k.clone()
        slot = f"slot 5 of page {table[3, 2].item()}"
        require_refusal(self, lambda: kv_append(rows, rows, cache, k, numbers([3, 3]),
                                                numbers([37, 37]), table), "2 tokens have " + slot)
        self.assertTrue(torch.equal(cache.nan_to_num(), k.nan_to_num()))
        table[3, 2] = -1  # where they are left out
        kv_append(rows, rows, cache, k.clone(), numbers([3, 3]), numbers([37, 37]), table)


class Merging(unittest.TestCase):
    """Of sequences that share a prefix."""

    def setUp(self):
        self.prefix = [normal(1, 40, 2, 32, seed=seed) for seed in (3, 4)]
        self.own = [normal(4, 50, 2, 32, seed=seed) for seed in (5, 6)]

    def parts(self, q):
        """Of the prefix, which is one sequence to all queries, and of what each has behind it."""
        (k, table), (v, _) = (paged(t, [40]) for t in self.prefix)
        out, lse = attention_paged(q.flatten(0, 1)[None], k, v, table, numbers([40]),
                                   return_lse=True)
        shared = out.view(q.shape), lse[0].view(4, 4, -1).transpose(0, 1)
        (k, table), (v, _) = (paged(t, LENGTHS) for t in self.own)
        return shared, attention_paged(q, k, v, table, numbers(LENGTHS), return_lse=True)

    def test_a_shared_prefix(self):
        for dtype, queries in ((torch.float32, 1), (torch.float32, 3), (torch.bfloat16, 1)):
            self.prefix, self.own = ([t.to(dtype) for t in ts] for ts in (self.prefix, self.own))
            q = normal(4, queries, 4, 32, dtype=dtype)
            outs, lses = zip(*self.parts(q))
            self.assertTrue((lses[1][1] == -torch.inf).all())
            outs[1][1] = torch.nan  # which has no keys
            out, lse = merge_states(outs, lses)
            for b, length in enumerate(LENGTHS):
                k, v = (torch.cat([prefix, own[b:b + 1, :length]], 1)
                        for prefix, own in zip(self.prefix, self.own))
                wanted = reference.attention(q[b:b + 1], k, v)
                require_close(self, f"out {b}", out[b:b + 1], wanted[0], dtype)
                require_close(self, f"lse {b}", lse[b:b + 1], wanted[1], dtype)
            # The same of packed queries, and in another order of calls.
            packed = merge_states(torch.stack(outs).flatten(1, 2),
                                  torch.stack(lses).transpose(1, 2).flatten(2, 3))
            self.assertTrue(torch.equal(packed[0].view_as(out), out))
            self.assertTrue(torch.equal(packed[1].unflatten(1, (4, -1)).transpose(0, 1), lse))
            again = merge_states([out], [lse])
            self.assertTrue(torch.equal(again[0], out))

    def test_refuses(self):
        out, lse = normal(4, 1, 4, 32), normal(4, 4, 1)
        for call, *said in (
                (lambda: merge_states([], []), "outs has 0 parts"),
                (lambda: merge_states([out, None], [lse, lse]), "NoneType"),
                (lambda: merge_states([out, out[:3]], [lse, lse]), "outs[1] is {3, 1, 4, 32}"),
                (lambda: merge_states([out, out.half()], [lse, lse]),
                 "outs[1] has elements of torch.float16"),
                (lambda: merge_states([out, out], [lse]), "lses {1, 4, 4, 1}"),
                (lambda: merge_states([out], [lse.transpose(1, 2)]), "lses {1, 4, 1, 4}",
                 "{parts, batch, heads, queries}"),
                (lambda: merge_states([out], [lse.half()]), "lses has elements of torch.float16"),
                (lambda: merge_states(out[None][:0], lse[None][:0]), "outs has no parts")):
            require_refusal(self, call, *said)
        wanting = out.clone().requires_grad_()
        require_refusal(self, lambda: merge_states([wanting], [lse])[0].sum().backward(),
                        "merge_states has no gradients")


class OfBytes(unittest.TestCase):
    def test_attention(self):
        narrow = [normal(2, 40, heads, 32, seed=heads + i).to(torch.float8_e4m3fn)
                  for i, heads in enumerate((4, 2, 2))]
        scales = torch.rand(4) + 0.5, torch.rand(2) + 0.5, torch.tensor(0.7)
        for causal in (False, True):
            out, lse = attention_fp8(*narrow, *scales, causal=causal, return_lse=True)
            wanted = reference.attention(
                *(t.double() * s.expand(t.shape[2])[:, None] for t, s in zip(narrow, scales)),
                causal=causal)
            error = (out.double() - wanted[0]).square().mean() / wanted[0].square().mean()
            self.assertLess(error.sqrt().item(), 0.035)
            require_close(self, "lse", lse, wanted[1], torch.float32)
        require_refusal(self, lambda: attention_fp8(narrow[0].float(), *narrow[1:], *scales),
                        "q has elements of torch.float32", "float8_e4m3fn")
        require_refusal(self, lambda: attention_fp8(*narrow, scales[1], *scales[1:]),
                        "q_scale is {2}", "one element for all heads")
        require_refusal(self, lambda: attention_fp8(*narrow, *scales, out_dtype=torch.float32),
                        "out_dtype is torch.float32", "set it to")

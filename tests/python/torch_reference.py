"""What the tests of tilewright.torch hold it against: the formulas in float64, under autograd."""

import inspect
import math
import os

import torch
from tilewright import TilewrightError

# What torch.empty gives is NaN then. cuBLAS, which the references use, wants to be told as well.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
torch.use_deterministic_algorithms(True)

# Of the largest element that is wanted: some roundings of the dtype.
ALLOWED = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


_TAKES_TOLERANCES = "rtol" in inspect.signature(torch.library.opcheck).parameters


def opcheck(operator, arguments, error=None, **how):
    """torch.library.opcheck, which older versions of PyTorch give no tolerance."""
    if error is not None and _TAKES_TOLERANCES:
        how.update(rtol=error, atol=error)
    torch.library.opcheck(operator, arguments, **how)


def attention(q, k, v, *, causal=False, window=None, softcap=0.0, sinks=None, scale=None):
    """The result {batch, queries, heads, dim_v} and the log-sum-exp {batch, heads, queries}."""
    q, k, v = (tensor.double().transpose(1, 2) for tensor in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (tensor.repeat_interleave(group, dim=1) for tensor in (k, v))
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    queries, keys = scores.shape[-2:]
    last = torch.arange(queries, device=q.device)[:, None] + keys - queries
    key = torch.arange(keys, device=q.device)
    visible = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
    if causal:
        visible &= key <= last
    if window:
        visible &= key > last - window
    scores = scores.masked_fill(~visible, -math.inf)
    if sinks is not None:
        sunk = sinks.double()[None, :, None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, sunk], dim=-1)
    lse = scores.logsumexp(-1)
    # A row that sees nothing is 0.
    weights = torch.exp(scores - lse.masked_fill(lse == -math.inf, 0)[..., None])[..., :keys]
    return (weights @ v).transpose(1, 2), lse


def packed(q, k, v, cu_seqlens_q, cu_seqlens_k, **options):
    """The same of packed sequences; the log-sum-exp is {heads, queries}."""
    outs, lses = [], []
    for i in range(len(cu_seqlens_q) - 1):
        rows = slice(cu_seqlens_q[i], cu_seqlens_q[i + 1])
        keys = slice(cu_seqlens_k[i], cu_seqlens_k[i + 1])
        out, lse = attention(q[None, rows], k[None, keys], v[None, keys], **options)
        outs.append(out[0])
        lses.append(lse[0])
    return torch.cat(outs), torch.cat(lses, dim=-1)


def normal(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def leaves(*tensors):
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def require_close(test, what, ours, wanted, dtype):
    """Elements that are infinite are so in both."""
    test.assertEqual(ours.shape, wanted.shape, what)
    finite = wanted.isfinite()
    test.assertTrue(torch.equal(ours.double()[~finite], wanted[~finite]), what)
    if not finite.any():
        return
    error = (ours.double() - wanted)[finite].abs().max().item()
    allowed = ALLOWED[dtype] * max(wanted[finite].abs().max().item(), 1)
    test.assertLessEqual(error, allowed, f"{what}: NaN or too far off")


def require_refusal(test, call, *parts):
    """The error, which names these."""
    with test.assertRaises(TilewrightError) as raised:
        call()
    for part in (*parts, "fix: "):
        test.assertIn(part, str(raised.exception))

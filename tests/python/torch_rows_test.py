"""Functions of rows and rotary embeddings of tilewright.torch on the target cpu: against PyTorch's
own in float64, with their gradients, and compiled."""

import unittest
import warnings

import torch
import torch_reference as reference
from tilewright.torch import cross_entropy, layer_norm, rms_norm, rotary, softmax
from torch.nn import functional
from torch_reference import leaves, normal, opcheck, require_close, require_refusal

OPERATORS = torch.ops.tilewright


def angles(positions, half):
    turns = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(half) / half)
    return turns.cos(), turns.sin()


def turned(x, cos, sin, positions=None, interleaved=False):
    """The formula, of {batch, length, heads, dim}."""
    half = cos.shape[1]
    if positions is None:
        positions = torch.arange(x.shape[1]).expand(x.shape[:2])
    cos, sin = (table.to(x.dtype)[positions.long()][:, :, None] for table in (cos, sin))
    pairs, rest = x[..., :2 * half], x[..., 2 * half:]
    left, right = ((pairs[..., ::2], pairs[..., 1::2]) if interleaved else
                   (pairs[..., :half], pairs[..., half:]))
    left, right = left * cos - right * sin, right * cos + left * sin
    pairs = (torch.stack([left, right], -1).flatten(-2) if interleaved else
             torch.cat([left, right], -1))
    return torch.cat([pairs, rest], -1)


class Rows(unittest.TestCase):
    def check(self, what, run, reference_run, given):
        """Result and gradients, twice over one graph."""
        dtype = given[0].dtype
        inputs, exact = leaves(*given), leaves(*(t.double() for t in given))
        ours, wanted = run(*inputs), reference_run(*exact)
        require_close(self, what, ours.detach(), wanted.detach(), dtype)
        d_out = normal(*ours.shape, dtype=ours.dtype, seed=7)
        for _ in range(2):
            mine = torch.autograd.grad(ours, inputs, d_out, retain_graph=True)
            for i, right in enumerate(torch.autograd.grad(wanted, exact, d_out.double(),
                                                          retain_graph=True)):
                require_close(self, f"{what}: gradient {i}", mine[i], right, dtype)

    def test_norms(self):
        for dtype in reference.ALLOWED:
            for shape in ((70, 100), (2, 3, 1030), (9,), (0, 8), (1, 1)):
                n = shape[-1]
                x, w, b = (normal(*shape, dtype=dtype), normal(n, dtype=dtype, seed=1),
                           normal(n, dtype=dtype, seed=2))
                with self.subTest(dtype=dtype, shape=shape):
                    self.check("rms_norm", lambda x, w: rms_norm(x, w, eps=1e-3),
                               lambda x, w: x * (x.square().mean(-1, True) + 1e-3).rsqrt() * w,
                               (x, w))
                    self.check("layer_norm", layer_norm,
                               lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b),
                               (x, w, b))
        # Calls of one shape that differ in eps alone.
        x = normal(6, 40)
        for eps in (1e-5, 0.5):
            self.check(f"eps {eps}", lambda x, eps=eps: layer_norm(x, eps=eps),
                       lambda x, eps=eps: functional.layer_norm(x, (40,), eps=eps), (x,))
        x, b = normal(5, 33), normal(33, seed=1)
        self.check("without weight", layer_norm, lambda x: functional.layer_norm(x, (33,)), (x,))
        self.check("bias alone", lambda x, b: layer_norm(x, None, b),
                   lambda x, b: functional.layer_norm(x, (33,), None, b), (x, b))

    def test_a_mean_far_from_zero(self):
        x = normal(6, 300) + 1000
        require_close(self, "layer_norm", layer_norm(x), functional.layer_norm(x.double(), (300,)),
                      torch.float16)

    def test_softmax(self):
        for dtype in reference.ALLOWED:
            for shape, dim in (((70, 100), -1), ((3, 5, 1030), -1), ((4, 20, 3), 1), ((7,), 0)):
                with self.subTest(dtype=dtype, shape=shape):
                    self.check("softmax", lambda x, d=dim: softmax(x, d),
                               lambda x, d=dim: x.softmax(d), (3 * normal(*shape, dtype=dtype),))
        masked = normal(3, 2050)
        masked[0, :2000] = masked[1, 30:] = -torch.inf
        require_close(self, "masked", softmax(masked), masked.double().softmax(-1), torch.float32)

    def test_cross_entropy(self):
        labels = torch.randint(50, (2, 30), generator=torch.Generator().manual_seed(1))
        labels[:, ::7] = -100
        for dtype in reference.ALLOWED:
            for options in ({}, {"reduction": "sum"}, {"reduction": "none"},
                            {"label_smoothing": 0.1}, {"ignore_index": 3}):
                given = labels.clone()
                given[given == -100] = options.get("ignore_index", -100)
                with self.subTest(dtype=dtype, **options):
                    self.check("cross_entropy",
                               lambda x, t=given, o=options: cross_entropy(x, t, **o),
                               lambda x, t=given, o=options: self.loss(x, t, **o),
                               (4 * normal(2, 30, 50, dtype=dtype),))
        wide, one = normal(3, 5000), torch.tensor([4999, 0, 1030])
        self.check("many classes", lambda x: cross_entropy(x, one),
                   lambda x: functional.cross_entropy(x, one), (wide,))

    @staticmethod
    def loss(x, labels, **options):
        """PyTorch's, of classes in the last axis."""
        loss = functional.cross_entropy(x.flatten(0, 1), labels.flatten(), **options)
        return loss.view(labels.shape) if loss.dim() else loss

    def test_rotary(self):
        cos, sin = angles(40, 8)
        positions = torch.randint(40, (2, 7), dtype=torch.int32,
                                  generator=torch.Generator().manual_seed(1))
        for dtype in reference.ALLOWED:
            x = normal(2, 7, 3, 20, dtype=dtype)
            for options in ({}, {"interleaved": True}, {"positions": positions}):
                with self.subTest(dtype=dtype, **options):
                    self.check("rotary", lambda x, o=options: rotary(x, cos, sin, **o),
                               lambda x, o=options: turned(x, cos, sin, **o), (x,))
        x = normal(2, 7, 3, 16)
        wanted = rotary(x, cos, sin, positions=positions).flatten(0, 1)
        for tokens in (14, 1):  # equal() compares the shapes too
            packed = rotary(x.flatten(0, 1)[:tokens], cos, sin,
                            positions=positions.flatten()[:tokens])
            self.assertTrue(torch.equal(packed, wanted[:tokens]))
        first = x.transpose(1, 2).contiguous().transpose(1, 2)
        self.assertTrue(torch.equal(rotary(first, cos, sin), rotary(x, cos, sin)))

    def test_strides(self):
        x, w = normal(6, 40), normal(40, seed=1)
        wide = torch.zeros(6, 50)
        wide[:, 5:45] = x
        for form in (x.t().contiguous().t(), wide[:, 5:45], normal(6, 80)[:, ::2].copy_(x)):
            self.assertTrue(torch.equal(rms_norm(form, w), rms_norm(x, w)))
            self.assertTrue(torch.equal(softmax(form), softmax(x)))
        self.assertTrue(torch.equal(softmax(x[0].expand(6, 40)), softmax(x[:1].repeat(6, 1))))
        (ones,) = leaves(x)
        rms_norm(ones).sum().backward()  # an expanded gradient
        (exact,) = leaves(x.double())
        functional.rms_norm(exact, (40,), eps=1e-5).sum().backward()
        require_close(self, "gradient", ones.grad, exact.grad, torch.float32)

    def test_only_what_gradients_need_is_kept(self):
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
            x, w = leaves(normal(4, 16), normal(16))
            rms_norm(x, w)
            softmax(x)
        self.assertEqual(sorted(tuple(t.shape) for t in kept),
                         [(0,), (4,), (4, 16), (4, 16), (16,)])

    def test_gradcheck(self):
        labels = torch.tensor([2, 0, -100])
        cos, sin = angles(3, 2)
        how = {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the inputs are of f32
            for run, *given in (
                    (rms_norm, normal(3, 5), normal(5)),
                    (layer_norm, normal(3, 5), normal(5), normal(5, seed=1)),
                    (softmax, normal(3, 5)),
                    (lambda x: cross_entropy(x, labels, label_smoothing=0.2), normal(3, 5)),
                    (lambda x: rotary(x, cos, sin), normal(1, 3, 2, 5))):
                self.assertTrue(torch.autograd.gradcheck(run, leaves(*given), **how))
            # What turns back is turned itself.
            (x,) = leaves(normal(1, 3, 2, 5))
            (d_x,) = torch.autograd.grad(rotary(x, cos, sin).square().sum(), x, create_graph=True)
            (again,) = torch.autograd.grad(d_x.sum(), x)
            require_close(self, "second", again, torch.full_like(x, 2), torch.float32)

    def test_opcheck(self):
        x, w = normal(6, 40), normal(40)
        labels = torch.tensor([1, 0, -100, 39, 4, 4])
        cos, sin = angles(6, 4)
        forms = {"plain": leaves(x)[0], "transposed": x.t().contiguous().t(),
                 "expanded": x[:1].expand(6, 40), "one row": leaves(x[:1])[0],
                 "offset": normal(7, 40)[1:].requires_grad_(), "no rows": leaves(x[:0])[0]}
        for what, form in forms.items():
            with self.subTest(what):
                for operator, *rest in (
                        (OPERATORS.norm, w, None, False, 1e-5), (OPERATORS.norm, w, w, True, 1e-5),
                        (OPERATORS.softmax,),
                        (OPERATORS.cross_entropy, labels[:form.shape[0]], 0.1, -100)):
                    opcheck(operator.default, (form, *rest, ""), error=1e-4)
        opcheck(OPERATORS.rotary.default,
                (*leaves(normal(2, 5, 2, 8)), cos, sin, None, True, False, ""))

    def test_compiled(self):
        def block(x, w, labels):
            x = rms_norm(x, w)
            turned = rotary(x.view(1, x.shape[0], 2, -1), *tables).flatten(2)[0]
            return cross_entropy(softmax(turned) + layer_norm(x), labels)

        tables = angles(32, 4)
        graphs = []
        compiled = torch.compile(block, fullgraph=True, dynamic=True,
                                 backend=_counting(graphs, "aot_eager"))
        first = 0  # how often the first call compiles
        for rows in range(5, 25):
            eager = leaves(normal(rows, 16), normal(16))
            traced = leaves(*eager)
            labels = torch.arange(rows) % 16
            block(*eager, labels).backward()
            compiled(*traced, labels).backward()
            for mine, wanted in zip(traced, eager):
                self.assertTrue(torch.equal(mine.grad, wanted.grad))
            first = first or len(graphs)
        self.assertEqual(len(graphs), first)

    def test_autocast(self):
        x = normal(4, 8).bfloat16()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for result in (rms_norm(x, normal(8)), layer_norm(x), softmax(x),
                           cross_entropy(x, torch.zeros(4, dtype=torch.int64))):
                self.assertEqual(result.dtype, torch.float32)
            self.assertEqual(softmax(x.double(), target="interpreter").dtype, torch.float64)

    def test_gradients_of_gradients_are_refused(self):
        (x,) = leaves(normal(3, 5))
        for run in (rms_norm, softmax):
            (d_x,) = torch.autograd.grad(run(x).square().sum(), x, create_graph=True)
            require_refusal(self, lambda d=d_x: d.sum().backward(), "differentiated")

    def test_what_cannot_be_done(self):
        x, labels = normal(4, 8), torch.zeros(4, dtype=torch.int64)
        cos, sin = angles(4, 2)
        heads = normal(1, 4, 2, 8)
        for call, *parts in (
                (lambda: rms_norm(x, normal(7)), "length of weight is 7", "8"),
                (lambda: layer_norm(x, None, x), "bias has 2 axes", "{n}"),
                (lambda: rms_norm(x, normal(8).half()), "weight has elements", "torch.float32"),
                (lambda: rms_norm(x, eps=-1), "eps is -1"),
                (lambda: softmax(x.double()), "x has elements of torch.float64"),
                (lambda: softmax(normal(3)[0]), "x has 0 axes"),
                (lambda: cross_entropy(x, labels.int()), "labels is of torch.int32"),
                (lambda: cross_entropy(x, labels[:3]), "labels is {3}", "{4, 8}"),
                (lambda: cross_entropy(x, labels + 8), "labels has 8, of 8", "7"),
                (lambda: cross_entropy(x, labels, reduction="all"), "reduction is 'all'"),
                (lambda: cross_entropy(x, labels, label_smoothing=2), "label_smoothing is 2"),
                (lambda: rotary(heads, cos[:3], sin[:3]), "4 tokens", "3 positions"),
                (lambda: rotary(heads, cos, sin[:, :1]), "half of sin is 1", "2"),
                (lambda: rotary(heads[..., :3], cos, sin), "dim of x is 3"),
                (lambda: rotary(heads, cos, sin, positions=labels[None]), "torch.int64"),
                (lambda: rotary(heads, cos, sin, positions=labels.int()[None] + 4),
                 "positions has 4, of 4"),
                (lambda: rotary(heads, *leaves(cos), sin), "cos requires a gradient")):
            with self.subTest(parts[0]):
                require_refusal(self, call, *parts)


def _counting(graphs, backend):
    def compile_and_count(graph, inputs):
        graphs.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    return compile_and_count

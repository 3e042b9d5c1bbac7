"""What is said of kernels: objects that print as text, show as pages in notebooks, and keep all of
the answer in `data`."""

import math
import os
import tempfile

from .binding import TilewrightError


def answer(*words):
    from . import _child  # most who import this package ask for no report
    return _child.answer(*words)


def _escaped(text):
    import html  # most who import this package see no notebook
    return html.escape(text)


class Report:
    """What the command answered, as `data`."""

    def __init__(self, data):
        self.data = data

    @property
    def ok(self):
        return self.data.get("ok", True)

    def __str__(self):
        raise NotImplementedError

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        return f"<pre>{_escaped(str(self))}</pre>"


def _outputs_text(outputs):
    return "".join(
        f"\n  {each['name']}: {'ok' if each['ok'] else 'WRONG'}, relative error "
        f"{each['error']['whole']:.2e} of {each['allowed']['whole']:.2e} allowed"
        for each in outputs)


def _page(file):
    with open(file, encoding="utf-8") as page:
        return page.read()


def _framed(page):
    return (f'<iframe srcdoc="{_escaped(page)}" style="width: 100%; height: 40em; '
            'border: 0"></iframe>')


class Simulation(Report):
    """`faults` are what a simulated GPU found, each with its message; `page` shows what ran when,
    where a trace was asked for."""

    def __init__(self, data, page=None):
        super().__init__(data)
        self.page = page

    @property
    def faults(self):
        return self.data["faults"]

    def __str__(self):
        said = (f"{self.data.get('kernel') or self.data.get('program')} on simulated "
                f"{self.data['target']}: {self.data['schedules']} schedules, "
                f"{self.data['operations']} operations, {len(self.faults)} faults")
        for fault in self.faults:
            said += f"\n  {fault['kind']} at {fault['first']}: {fault['message']}"
        if self.faults:
            return said + f"\n  replay with {self.data['replay']}"
        return said + _outputs_text(self.data.get("outputs", ()))

    def _repr_html_(self):
        return _framed(self.page) if self.page else super()._repr_html_()


class Explanation(Report):
    """`page` is one document of HTML: source and CUDA side by side, stages and resources."""

    def __init__(self, data, page):
        super().__init__(data)
        self.page = page

    @property
    def ok(self):
        return not self.data.get("failures")

    def save(self, file):
        with open(file, "w", encoding="utf-8") as page:
            page.write(self.page)

    def __str__(self):
        return "\n".join(_explained(each) for each in self.data.get("kernels", [self.data]))

    def _repr_html_(self):
        return _framed(self.page)


def _explained(data):
    lines = [f"{data['kernel']} for {data['target']}"]
    resources = data.get("resources") or {}
    if (resources.get("registers") or -1) >= 0:  # not there without an assembler
        lines.append("  {registers} registers, {stack_bytes} bytes of stack, {spill_bytes} bytes "
                     "spilled, {shared_bytes} bytes of shared memory".format(**resources))
    for name, field in (data.get("schedule_fields") or {}).items():
        lines.append(f"  schedule {name}: {field['value']} ({field['by']})")
    for decision in data.get("decisions") or ():
        lines.append(f"  decision: {decision['what']}: {decision['why']}")
    lines += [f"  warning: {warning}" for warning in data.get("warnings") or ()]
    lines += [f"  {failure}" for failure in data.get("failures") or ()]
    return "\n".join(lines)


class GradientCheck(Report):
    def __str__(self):
        said = (f"{self.data['kernel']} against {self.data['forward']}, on {self.data['target']}: "
                f"{'ok' if self.ok else 'WRONG'}")
        for each in self.data["gradients"]:
            said += (f"\n  {each['gradient']}, the gradient of {each['of']}: "
                     f"{'ok' if each['ok'] else 'WRONG'}, relative error {each['error']:.2e} in "
                     f"float64, {each['own_error']:.2e} of {each['own_allowed']:.2e} in its types")
        return said


class Timing(Report):
    """Seconds of runs: on a GPU by its own clock, each with a cold L2 cache."""

    @property
    def median(self):
        return self.data["seconds"]

    @property
    def minimum(self):
        return self.data["minimum_seconds"]

    @property
    def maximum(self):
        return self.data["maximum_seconds"]

    def __str__(self):
        return (f"{self.data['kernel']} on {self.data['target']}: median {self.median * 1e6:.4g} "
                f"us of {self.data['runs']} runs ({self.minimum * 1e6:.4g} to "
                f"{self.maximum * 1e6:.4g})")


class Tuning(Report):
    """`best` is the fastest schedule of each point, `points` have all that were tried."""

    @property
    def points(self):
        return self.data["points"]

    def __str__(self):
        said = f"{self.data['kernel']} for {self.data['target']}"
        for point in self.points:
            said += f"\n  {', '.join(point.get('sizes', ())) or 'as set'}"
            for each in _ranked(point)[:3]:
                said += f"\n    {_seconds(each) * 1e6:9.4g} us  {each['name']}"
        return said

    @property
    def best(self):
        return [_ranked(point)[0]["name"] for point in self.points]


def _seconds(entry):
    return entry.get("seconds", entry.get("predicted_seconds", math.inf))


def _ranked(point):
    tried = [each for each in point["variants"] if not each.get("skipped")]
    return sorted(tried, key=_seconds)


class Difference:
    """Of an output: the root mean square of what differs, relative to that of the reference."""

    def __init__(self, name, error, allowed):
        self.name, self.error, self.allowed = name, error, allowed

    @property
    def ok(self):
        return self.error <= self.allowed  # not, where the error is NaN


class Check(Report):
    """Outputs against a reference. True where all agree."""

    def __init__(self, kernel, target, differences):
        super().__init__({"kernel": kernel, "target": target,
                          "ok": all(each.ok for each in differences)})
        self.differences = differences

    def __bool__(self):
        return self.ok

    def __str__(self):
        said = f"{self.data['kernel']} on {self.data['target']}: {'ok' if self.ok else 'WRONG'}"
        for each in self.differences:
            said += (f"\n  {each.name}: {'ok' if each.ok else 'WRONG'}, relative error "
                     f"{each.error:.2e} of {each.allowed:.2e} allowed")
        return said


def setting(value):
    """As the command and the library take it."""
    # A truth value of NumPy is none of Python's.
    is_truth = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    if isinstance(value, (list, tuple)):  # of lengths
        return ",".join(setting(each) for each in value)
    return str(value).lower() if is_truth else str(value)


def _words(settings):
    return [word for name, value in settings.items()
            for word in ("--set", f"{name}={setting(value)}")]


def _named(kernel):
    try:
        return os.fspath(kernel)
    except TypeError:
        raise TilewrightError(f"error: the kernel is {kernel!r}\n  fix: pass the name of one of "
                              "the library, a file, or what load() gives") from None


def _inputs(inputs):
    for name, value in (inputs or {}).items():
        if not isinstance(value, (str, os.PathLike)):
            raise TilewrightError(f"error: the input {name} is {value!r}\n  fix: pass words, as "
                                  "'uniform:-1:1', or the name of a file")
    return [word for name, value in (inputs or {}).items() for word in ("--in", f"{name}={value}")]


def simulate(kernel, *, target="sm_90a", schedules=1, seed=0, inputs=None, trace=False, **settings):
    """Executes what ships to a GPU on a simulated one, in so many orders of its concurrent work.
    `kernel` is a name of the library, a file or what `load` gives; the settings are its options and
    sizes. Inputs that `inputs` does not give, by their names as files or in words as
    "uniform:-1:1", are random. With `trace` the report has a page of what ran when."""
    words = ["simulate", _named(kernel), "--target", target, "--schedules", str(schedules),
             "--seed", str(seed), *_inputs(inputs), *_words(settings)]
    if not trace:
        return Simulation(answer(*words))
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "trace.html")
        data = answer(*words, "--trace", file)
        return Simulation(data, _page(file))


def explain(kernel, *, target="sm_90a", **settings):
    """What a kernel is compiled to: a page in a notebook."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "explanation.html")
        data = answer("explain", _named(kernel), "--target", target, "--html", file,
                      *_words(settings))
        return Explanation(data, _page(file))


def check_gradients(kernel, backward=None, *, target="cpu", directions=2, seed=0, **settings):
    """Compares the gradients that a kernel computes with derivatives of its forward pass: of the
    library by the name of either, of one's own both."""
    words = ["check-gradients", _named(kernel), "--target", target, "--directions",
             str(directions), "--seed", str(seed), *_words(settings)]
    if backward is not None:
        words += ["--backward", _named(backward)]
    return GradientCheck(answer(*words))


def time(kernel, *, target=None, inputs=None, seed=0, **settings):
    """How long a run takes: the median of many behind some that do not count."""
    words = ["bench", _named(kernel), *_inputs(inputs), "--seed", str(seed), *_words(settings)]
    return Timing(answer(*words, *(("--target", target) if target else ())))


def tune(kernel, *, sizes=None, model_only=False, **settings):
    """Measures a kernel's schedules on the GPU: `sizes` are a list for each length, as
    {"m": [16, 64]}. With model_only they are ranked for sm_90a, without a GPU."""
    words = ["tune", _named(kernel), "--target", "sm_90a" if model_only else "cuda",
             *_words(settings)]
    for name, values in (sizes or {}).items():
        values = [values] if isinstance(values, int) else values
        words += ["--sizes", f"{name}=" + ",".join(str(value) for value in values)]
    return Tuning(answer(*words, *(("--model-only",) if model_only else ())))

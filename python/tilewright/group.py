"""Processes that work together, one for each rank (docs/distributed.md)."""

import ctypes
import datetime
import itertools
import math
import numbers
import operator
import weakref

from . import binding
from .binding import TilewrightError
from .tensor import DTYPES, Tensor


def _refuse(name, value, wanted):
    raise TilewrightError(f"error: a group's {name} is {value!r}, of type {type(value).__name__}\n"
                          f"  fix: pass {wanted}")


def _whole(name, value):
    """Of 32 bits, as the library takes it. Texts of the environment are none."""
    try:
        number = operator.index(value)
    except TypeError:
        _refuse(name, value, f"a whole number, as {name}=int(...) makes one of a text")
    if not -2**31 <= number < 2**31:
        raise TilewrightError(f"error: a group's {name} is {number}\n"
                              "  fix: pass one of 32 bits")
    return number


def _seconds(name, value):
    if not isinstance(value, numbers.Real):
        _refuse(name, value, f"seconds, as {name}=float(...) makes them of a text")
    return value


def _bytes(name, value):
    if not isinstance(value, str):
        _refuse(name, value, "a text")
    return value.encode()


def _shape(name, shape):
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        sizes = None
    if sizes is None or any(size < 0 for size in sizes):
        raise TilewrightError(f"error: the shape of {name} is {shape!r}\n"
                              "  fix: pass a tuple of its sizes, whole numbers from 0 on")
    return sizes


class _StoreFunctions:
    """The functions of a store with PyTorch's methods: set(key, value), get(key) and
    wait([key], timedelta). What they raise is kept: it does not go through C."""

    def __init__(self, store):
        self.failure = None

        def guarded(action):
            def call(*arguments):
                try:
                    action(*arguments)
                    return 0
                except Exception as error:  # whatever the store's own function raises
                    self.failure = error
                    return 1

            return call

        def put(_, key, value, size):
            store.set(key.decode(), value[:size])

        def get(_, key, value, room, size):
            held = store.get(key.decode())
            held = held.encode() if isinstance(held, str) else bytes(held)
            size[0] = len(held)
            ctypes.memmove(value, held, min(len(held), room))

        def wait(_, key, seconds):
            store.wait([key.decode()], datetime.timedelta(seconds=seconds))

        self.functions = binding.Store(None, binding.SetFunction(guarded(put)),
                                       binding.GetFunction(guarded(get)),
                                       binding.WaitFunction(guarded(wait)))


class Group:
    """Made by one of the class methods, which return when all ranks have come. `rank` and `size`
    may be left out where a launcher or MPI says them, `patience` and `silence` are seconds. Its
    calls are for one thread at a time, and all ranks do the same ones in the same order. `name` is
    this object's in this process, where a text must stand for it."""

    _all = weakref.WeakValueDictionary()
    _numbers = itertools.count()

    def __init__(self, library, handle):
        self.name = f"group {next(self._numbers)}"
        self._all[self.name] = self
        self._library, self._handle = library, handle
        self.rank = library.group_rank(handle)
        self.size = library.group_size(handle)

    @classmethod
    def named(cls, name):
        if name not in cls._all:
            raise TilewrightError(f"error: {name} is there no more\n  fix: keep the group as long "
                                  "as what was compiled with it is used")
        return cls._all[name]

    @classmethod
    def by_file(cls, path, **options):
        """Rank 0 writes the file, and removes it when all have come."""
        return cls._join("by_file", options, str(path).encode())

    @classmethod
    def by_socket(cls, host, port, token, **options):
        """Rank 0 listens there alone. Who shows another token is turned away."""
        return cls._join("by_socket", options, _bytes("host", host), _whole("port", port),
                         _bytes("token", token))

    @classmethod
    def by_environment(cls, **options):
        """By what torchrun or mpirun has said in the environment."""
        return cls._join("by_environment", options)

    @classmethod
    def by_mpi(cls, **options):
        """By the MPI that the process has loaded, else libmpi."""
        return cls._join("by_mpi", options)

    @classmethod
    def by_store(cls, store, key="tilewright", **options):
        """By a store such as those of torch.distributed: set(key, value), get(key) and
        wait([key], timedelta)."""
        made = _StoreFunctions(store)
        try:
            return cls._join("by_store", options, ctypes.byref(made.functions),
                             _bytes("key", key))
        except TilewrightError as error:
            raise error from made.failure

    @classmethod
    def _join(cls, way, options, *arguments):
        return cls._made(way, arguments, **options)

    @classmethod
    def _made(cls, way, arguments, rank=-1, size=-1, address=None, patience=0, silence=0,
              library=None):
        library = library or binding.load_library()
        options = binding.GroupOptions(_whole("rank", rank), _whole("size", size),
                                       _bytes("address", address) if address else None,
                                       _seconds("patience", patience), _seconds("silence", silence))
        create = getattr(library, "group_create_" + way)
        return cls(library, library.make(create, *arguments, ctypes.byref(options)))

    def close(self):
        """The others are told that this rank leaves. What was made with the group keeps it."""
        if self._handle:
            self._library.group_destroy(self._handle)
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def _open(self):
        if not self._handle:
            raise TilewrightError(f"error: rank {self.rank} has closed the group\n  fix: close it "
                                  "behind its last use")
        return self._handle

    def barrier(self, name="barrier"):
        """Returns when all ranks have come to the barrier of this name."""
        self._library.group_barrier(self._open(), _bytes("barrier", name))

    def all_gather(self, own, name="all_gather"):
        """What each rank gives, as bytes, in their order."""
        if isinstance(own, (str, int)):
            raise TilewrightError(f"error: what {name} is given is {own!r}, of type "
                                  f"{type(own).__name__}\n  fix: pass bytes; of a text "
                                  "text.encode()")
        own, called = bytes(own), _bytes("exchange", name)
        data, sizes = (ctypes.c_void_p * self.size)(), (ctypes.c_int64 * self.size)()
        self._library.group_all_gather(self._open(), called, own, len(own), data, sizes)
        return [ctypes.string_at(at or 0, size) if size else b"" for at, size in zip(data, sizes)]

    def lost(self):
        """The ranks that are known to have died, in the order in which they were missed."""
        ranks = (ctypes.c_int32 * self.size)()
        return list(ranks[:self._library.group_lost(self._open(), ranks, self.size)])

    def require_all(self, waiting_for):
        """Raises if a rank has died or left."""
        self._library.group_require_all(self._open(), _bytes("wait", waiting_for))

    def symmetric(self, shape, dtype, name, memory="host", device=0):
        """A tensor that every rank has and all ranks of one machine reach: a list with that of each
        rank. By all ranks."""
        shape = _shape(name, shape)
        if dtype not in DTYPES:
            raise TilewrightError(f"error: the dtype of {name} is {dtype!r}\n"
                                  f"  fix: one of {', '.join(DTYPES)}")
        own = f"{dtype} {list(shape)}"
        for rank, other in enumerate(self.all_gather(own.encode(), f"the shape of {name}")):
            if other.decode() != own:
                raise TilewrightError(f"error: {name} is {other.decode()} in rank {rank}, and "
                                      f"{own} in rank {self.rank}\n"
                                      "  fix: the same dtype and shape in all ranks")
        size = math.prod(shape) * DTYPES[dtype][0]
        whole = SymmetricMemory(self, max(size, 1), name, memory, device)
        return [whole.tensor(rank, 0, shape, dtype) for rank in range(self.size)]


class SymmetricMemory:
    """So many bytes of every rank, on the host or on its GPU, of which parts are allocated. By all
    ranks."""

    def __init__(self, group, size, name, memory="host", device=0):
        self._library, self._group = group._library, group
        self._handle = None
        self.on_gpu = memory == "gpu"
        self._handle = self._library.make(self._library.symmetric_create, group._open(), size,
                                          _bytes("memory", name), _bytes("memory", memory),
                                          device)
        self.size = size

    def close(self):
        """No other rank is waited for. What uses the memory has ended by then."""
        if self._handle:
            self._library.symmetric_destroy(self._handle)
            self._handle = None

    def __del__(self):
        self.close()

    def address(self, rank):
        """Of the first byte of that rank's."""
        address = self._library.symmetric_address(self._handle, rank)
        if address is None:
            raise TilewrightError(f"error: symmetric memory of rank {rank}, and there are "
                                  f"{self._group.size} ranks\n  fix: a rank below that; memory "
                                  "that was not closed")
        return address

    def allocate(self, size, name, alignment=256):
        """The offset, the same in all ranks, of so many bytes that nobody has yet."""
        offset = ctypes.c_int64()
        self._library.symmetric_allocate(self._handle, size, name.encode(), alignment,
                                         ctypes.byref(offset))
        return offset.value

    def tensor(self, rank, offset, shape, dtype):
        """The elements at this offset of that rank's."""
        library, handle = self._library, self._handle

        def write(source, size, owner=self):
            library.symmetric_write(handle, rank, offset, source, size)

        def read(target, size, owner=self):
            library.symmetric_read(handle, rank, offset, target, size)

        return Tensor(self.address(rank) + offset, dtype, shape, self, self.on_gpu, (write, read))

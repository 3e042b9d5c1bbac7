// Calls of kernels from Python without ctypes, on PyTorch's tensors as its C interface describes
// them: what tilewright/torch/_direct.py does for a call like an earlier one. The library neither
// needs Python nor is built against it. It takes functions of Python's stable ABI from the process
// that asks for these calls, and there are none where one is missing.

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/hash.h"
#include "tilewright/c_api.h"

namespace {

using PythonObject = void;  // PyObject, of which only Python knows what it holds
using Length = std::ptrdiff_t;

constexpr std::size_t kMostGiven = 8, kMostAxes = 6, kMostTensors = 16;

// DLPack's, of its first version. PyTorch has the table from 2.10 on.
struct DlTensor {
  void* data;
  std::int32_t device_type, device, rank;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  const std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
constexpr std::int32_t kOnGpu = 2;
constexpr std::uint8_t kFirstFloat = 2;  // before it are integers
struct DlExchange {
  std::uint32_t major, minor;
  const DlExchange* previous;
  void *allocate, *give, *take;
  int (*describe)(PythonObject* tensor, DlTensor* description);
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

// Of the C interface of Python that all of 3.9 and later have.
struct Method {
  const char* name;
  PythonObject* (*function)(PythonObject* self, PythonObject* const* given, Length count);
  int flags;
  const char* text;
};
constexpr int kTakesArray = 0x80;
struct Python {
  PythonObject* (*call)(PythonObject*, ...) = nullptr;
  PythonObject* (*call_with)(PythonObject*, PythonObject*) = nullptr;
  PythonObject* (*attribute)(PythonObject*, PythonObject*) = nullptr;
  PythonObject* (*type)(PythonObject*) = nullptr;
  int (*is_true)(PythonObject*) = nullptr;
  Length (*hash)(PythonObject*) = nullptr;
  int (*compare)(PythonObject*, PythonObject*, int) = nullptr;
  PythonObject* (*pack)(Length, ...) = nullptr;
  PythonObject* (*new_tuple)(Length) = nullptr;
  int (*set_item)(PythonObject*, Length, PythonObject*) = nullptr;
  PythonObject* (*item)(PythonObject*, Length) = nullptr;
  Length (*size)(PythonObject*) = nullptr;
  PythonObject* (*text)(const char*) = nullptr;
  PythonObject* (*number)(long) = nullptr;
  long (*value)(PythonObject*) = nullptr;
  void* (*address)(PythonObject*) = nullptr;
  void* (*pointer)(PythonObject*, const char*) = nullptr;
  PythonObject* (*function)(Method*, PythonObject*, PythonObject*) = nullptr;
  PythonObject* (*error)() = nullptr;
  void (*clear_error)() = nullptr;
  void (*keep)(PythonObject*) = nullptr;
  void (*drop)(PythonObject*) = nullptr;
  void* (*let_others_run)() = nullptr;
  void (*run_again)(void*) = nullptr;
  PythonObject* none = nullptr;

  // Whether this process has all of them.
  bool find() {
    bool found = true;
    const auto take = [&found](auto& place, const char* name) {
      void* const symbol = dlsym(RTLD_DEFAULT, name);
      found = found && symbol != nullptr;
      place = reinterpret_cast<std::remove_reference_t<decltype(place)>>(symbol);
    };
    take(call, "PyObject_CallFunctionObjArgs");
    take(call_with, "PyObject_CallObject");
    take(attribute, "PyObject_GetAttr");
    take(type, "PyObject_Type");
    take(is_true, "PyObject_IsTrue");
    take(hash, "PyObject_Hash");
    take(compare, "PyObject_RichCompareBool");
    take(pack, "PyTuple_Pack");
    take(new_tuple, "PyTuple_New");
    take(set_item, "PyTuple_SetItem");
    take(item, "PyTuple_GetItem");
    take(size, "PyTuple_Size");
    take(text, "PyUnicode_FromString");
    take(number, "PyLong_FromLong");
    take(value, "PyLong_AsLong");
    take(address, "PyLong_AsVoidPtr");
    take(pointer, "PyCapsule_GetPointer");
    take(function, "PyCFunction_NewEx");
    take(error, "PyErr_Occurred");
    take(clear_error, "PyErr_Clear");
    take(keep, "Py_IncRef");
    take(drop, "Py_DecRef");
    take(let_others_run, "PyEval_SaveThread");
    take(run_again, "PyEval_RestoreThread");
    take(none, "_Py_NoneStruct");
    return found;
  }
};

Python python;

// One reference.
class Held {
 public:
  Held() = default;
  explicit Held(PythonObject* own) : object_(own) {}
  Held(Held&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Held() { python.drop(object_); }
  static Held another(PythonObject* object) {
    python.keep(object);
    return Held(object);
  }
  PythonObject* get() const { return object_; }
  PythonObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PythonObject* object_ = nullptr;
};

// What there is of PyTorch.
struct Framework {
  const DlExchange* exchange = nullptr;
  // fail(status) raises what the library's last error says.
  Held tensor, parameter, is_watched, is_grad_enabled, is_neg, empty_like, current_device, fail;
  Held requires_grad;  // the attribute's name
};

// Where a tensor of a kernel comes from: a number counts those that are given, and those behind
// them are the same in each call.
constexpr long kOut = -1, kLse = -2;

// What a call is that was made once. Nothing of it changes.
struct Remembered {
  std::vector<std::int64_t> words;  // how its tensors lie, and the stream
  Held settings, out_like, lse_like;
  Held unread;  // a place for the log-sum-exp, if there is one that nobody reads
  Held check;   // None, or what says whether the tensors' contents will do
  Held run;     // what records gradients
  Held kept;    // what these point to
  const tilewright_kernel* kernel = nullptr;
  std::vector<tilewright_tensor> tensors;
  std::vector<long> places;
  std::uintptr_t misaligned = 0;  // bits that no address may have
};

// Never destroyed: Python ends before the process does.
struct Memory {
  std::mutex mutex;  // nothing of Python is called under it
  std::unordered_map<std::uint64_t, std::shared_ptr<const Remembered>> calls;
};

Memory& memory() {
  static auto& made = *new Memory;
  return made;
}

Framework& framework() {
  static auto& made = *new Framework;
  return made;
}

PythonObject* none() {
  python.keep(python.none);
  return python.none;
}

// Nobody hears of it: the call that goes the whole way says what is wrong.
PythonObject* elsewhere() {
  if (python.error() != nullptr) python.clear_error();
  return none();
}

// The tensors of a call, some of which may be None.
struct Given {
  PythonObject* const* objects;
  std::size_t count;
  std::vector<std::int64_t>& words;
  std::array<void*, kMostGiven> data = {};
  std::array<bool, kMostGiven> is_float = {};
  void* stream = nullptr;

  bool describe() {
    words.clear();
    if (count == 0 || count > kMostGiven) return false;
    std::int64_t device = -1;
    for (std::size_t i = 0; i < count; ++i) {
      if (objects[i] == python.none) {
        words.push_back(-1);
        continue;
      }
      DlTensor tensor;
      if (!describe(objects[i], tensor)) return false;
      data[i] = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
      is_float[i] = tensor.code >= kFirstFloat;
      if (is_float[i] && is_negated(objects[i])) return false;
      if (tensor.device_type == kOnGpu) device = tensor.device;
    }
    return find_stream(device);
  }

 private:
  bool describe(PythonObject* object, DlTensor& tensor) {
    const Framework& torch = framework();
    PythonObject* const type = python.type(object);
    python.drop(type);  // the object has it
    if (type != torch.tensor.get() && type != torch.parameter.get()) return false;
    if (torch.exchange->describe(object, &tensor) != 0) return false;
    if (tensor.rank < 0 || tensor.rank > static_cast<int>(kMostAxes)) return false;
    if (tensor.rank > 0 && (tensor.shape == nullptr || tensor.strides == nullptr)) return false;
    words.push_back(tensor.code | tensor.bits << 8 | tensor.lanes << 16);
    words.push_back(static_cast<std::int64_t>(tensor.device_type) << 32 | tensor.device);
    words.push_back(tensor.rank);
    words.insert(words.end(), tensor.shape, tensor.shape + tensor.rank);
    words.insert(words.end(), tensor.strides, tensor.strides + tensor.rank);
    return true;
  }

  // Whether its memory holds other numbers than it says; an error too.
  static bool is_negated(PythonObject* object) {
    const Held negated(python.call(framework().is_neg.get(), object, nullptr));
    return !negated || python.is_true(negated.get()) != 0;
  }

  // None on the host. A GPU must be the current one.
  bool find_stream(std::int64_t device) {
    stream = nullptr;
    if (device >= 0) {
      const Held current(python.call(framework().current_device.get(), nullptr));
      if (!current || python.value(current.get()) != device) return false;
      if (framework().exchange->current_stream(kOnGpu, static_cast<int>(device), &stream) != 0) {
        return false;
      }
    }
    words.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(stream)));
    return true;
  }
};

std::vector<std::int64_t>& own_words() {
  thread_local std::vector<std::int64_t> words;
  return words;
}

std::uint64_t place_of(const std::vector<std::int64_t>& words, Length settings) {
  return tilewright::hash64(
      {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(words[0])},
      static_cast<std::uint64_t>(settings));
}

std::shared_ptr<const Remembered> find(const Given& given, PythonObject* settings, Length hash) {
  std::shared_ptr<const Remembered> found;
  {
    const std::lock_guard lock(memory().mutex);
    const auto place = memory().calls.find(place_of(given.words, hash));
    if (place == memory().calls.end() || place->second->words != given.words) return nullptr;
    found = place->second;
  }
  constexpr int kEqual = 2;
  if (python.compare(found->settings.get(), settings, kEqual) != 1) return nullptr;
  return found;
}

Held tuple_of(const Given& given) {
  Held tuple(python.new_tuple(static_cast<Length>(given.count)));
  for (std::size_t i = 0; tuple && i < given.count; ++i) {
    python.keep(given.objects[i]);
    python.set_item(tuple.get(), static_cast<Length>(i), given.objects[i]);
  }
  return tuple;
}

// Whether the call records gradients; negative: an error.
int records_gradients(const Given& given) {
  const Held enabled(python.call(framework().is_grad_enabled.get(), nullptr));
  if (!enabled) return -1;
  if (python.is_true(enabled.get()) == 0) return 0;
  for (std::size_t i = 0; i < given.count; ++i) {
    if (!given.is_float[i]) continue;
    const Held wants(python.attribute(given.objects[i], framework().requires_grad.get()));
    const int is_true = wants ? python.is_true(wants.get()) : -1;
    if (is_true != 0) return is_true;
  }
  return 0;
}

PythonObject* launch(const Given& given, const Remembered& call, bool wants_lse) {
  Held out(python.call(framework().empty_like.get(), call.out_like.get(), nullptr));
  Held lse = call.unread.get() == python.none || wants_lse
                 ? Held(python.call(framework().empty_like.get(), call.lse_like.get(), nullptr))
                 : Held::another(call.unread.get());
  if (!out || !lse) return nullptr;
  DlTensor results[2];
  if (framework().exchange->describe(out.get(), &results[0]) != 0 ||
      framework().exchange->describe(lse.get(), &results[1]) != 0) {
    return elsewhere();
  }
  std::array<tilewright_tensor, kMostTensors> tensors;
  std::copy(call.tensors.begin(), call.tensors.end(), tensors.begin());
  std::uintptr_t bits = 0;
  for (std::size_t i = 0; i < call.places.size(); ++i) {
    const long place = call.places[i];
    if (place < 0) {
      const DlTensor& result = results[place == kOut ? 0 : 1];
      tensors[i].data = static_cast<std::byte*>(result.data) + result.byte_offset;
    } else if (place < static_cast<long>(given.count)) {
      tensors[i].data = given.data[static_cast<std::size_t>(place)];
    }
    bits |= reinterpret_cast<std::uintptr_t>(tensors[i].data);
  }
  if ((bits & call.misaligned) != 0) return elsewhere();
  void* const thread = python.let_others_run();
  const tilewright_status status = tilewright_kernel_run(
      call.kernel, tensors.data(), static_cast<std::int32_t>(call.places.size()), given.stream);
  python.run_again(thread);
  if (status != TILEWRIGHT_OK) {
    const Held number(python.number(status));
    return python.call(framework().fail.get(), number.get(), nullptr);
  }
  return python.pack(2, out.get(), lse.get());
}

// call(settings, wants_lse, *tensors): (out, lse), or None for what must go the whole way.
PythonObject* call(PythonObject*, PythonObject* const* given, Length count) {
  if (count < 3) return none();
  const Length hash = python.hash(given[0]);  // of a caller's class it may call us
  Given tensors{given + 2, static_cast<std::size_t>(count - 2), own_words()};
  if (hash == -1 || !tensors.describe()) return elsewhere();
  const std::shared_ptr<const Remembered> found = find(tensors, given[0], hash);
  if (found == nullptr) return elsewhere();
  const Held watched(python.call(framework().is_watched.get(), nullptr));
  if (!watched || python.is_true(watched.get()) != 0) return elsewhere();
  const int records = records_gradients(tensors);
  if (records < 0) return elsewhere();
  if (records > 0) {
    const Held tuple = tuple_of(tensors);
    return tuple ? python.call(found->run.get(), tuple.get(), given[1], nullptr) : nullptr;
  }
  if (found->check.get() != python.none) {
    const Held tuple = tuple_of(tensors);
    const Held fits(tuple ? python.call_with(found->check.get(), tuple.get()) : nullptr);
    if (!fits || python.is_true(fits.get()) != 1) return elsewhere();
  }
  return launch(tensors, *found, python.is_true(given[1]) == 1);
}

// remember(settings, tensors, most, kernel, arguments, places, out_like, lse_like, unread,
// misaligned, check, run, kept) -> whether it is. `arguments` is the address of the kernel's
// tensors, in which those that are the same in each call have their addresses.
PythonObject* remember(PythonObject*, PythonObject* const* given, Length count) {
  if (count != 13) return elsewhere();
  const Length tensors = python.size(given[1]), places = python.size(given[5]);
  if (tensors < 0 || tensors > static_cast<Length>(kMostGiven) || places < 0 ||
      places > static_cast<Length>(kMostTensors)) {
    return elsewhere();
  }
  std::array<PythonObject*, kMostGiven> objects;
  for (Length i = 0; i < tensors; ++i) {
    objects[static_cast<std::size_t>(i)] = python.item(given[1], i);
  }
  const Length hash = python.hash(given[0]);
  Given described{objects.data(), static_cast<std::size_t>(tensors), own_words()};
  if (hash == -1 || !described.describe()) return elsewhere();

  const auto made = std::make_shared<Remembered>();
  made->words = described.words;
  Held* const held[] = {&made->settings, &made->out_like, &made->lse_like, &made->unread,
                        &made->check,    &made->run,      &made->kept};
  const int numbers[] = {0, 6, 7, 8, 10, 11, 12};
  for (std::size_t i = 0; i < std::size(held); ++i) *held[i] = Held::another(given[numbers[i]]);
  made->kernel = static_cast<const tilewright_kernel*>(python.address(given[3]));
  const auto* const arguments = static_cast<const tilewright_tensor*>(python.address(given[4]));
  made->tensors.assign(arguments, arguments + places);
  for (Length i = 0; i < places; ++i)
    made->places.push_back(python.value(python.item(given[5], i)));
  made->misaligned = static_cast<std::uintptr_t>(python.value(given[9]));
  const auto most = static_cast<std::size_t>(python.value(given[2]));
  const bool fits = std::all_of(made->places.begin(), made->places.end(),
                                [](long place) { return place >= kLse; });
  if (python.error() != nullptr || !fits) return elsewhere();

  // What these hold is dropped without the lock.
  decltype(Memory::calls) forgotten;
  std::shared_ptr<const Remembered> other = made;
  {
    const std::lock_guard lock(memory().mutex);
    if (memory().calls.size() >= most) forgotten.swap(memory().calls);
    memory().calls[place_of(made->words, hash)].swap(other);
  }
  return python.number(1);
}

PythonObject* forget(PythonObject*, PythonObject* const*, Length) {
  decltype(Memory::calls) forgotten;
  {
    const std::lock_guard lock(memory().mutex);
    forgotten.swap(memory().calls);
  }
  return none();
}

}  // namespace

// (call, remember, forget) over what is given: the table of tensors' descriptions in a capsule,
// and the members of Framework in their order. None where PyTorch lacks something, and nothing
// where this process does. With Python's lock, as ctypes.PyDLL calls.
extern "C" __attribute__((visibility("default"))) void* tilewright_python_calls(void* given) {
  if (!python.find()) return nullptr;
  Framework& torch = framework();
  const auto* exchange =
      static_cast<const DlExchange*>(python.pointer(python.item(given, 0), "dlpack_exchange_api"));
  while (exchange != nullptr && exchange->major != 1) exchange = exchange->previous;
  if (exchange == nullptr || exchange->describe == nullptr) return elsewhere();
  torch.exchange = exchange;
  Held* const members[] = {&torch.tensor,          &torch.parameter, &torch.is_watched,
                           &torch.is_grad_enabled, &torch.is_neg,    &torch.empty_like,
                           &torch.current_device,  &torch.fail};
  Length next = 1;
  for (Held* const member : members) *member = Held::another(python.item(given, next++));
  torch.requires_grad = Held(python.text("requires_grad"));
  static Method methods[] = {{"call", call, kTakesArray, nullptr},
                             {"remember", remember, kTakesArray, nullptr},
                             {"forget", forget, kTakesArray, nullptr}};
  const Held made[] = {Held(python.function(&methods[0], nullptr, nullptr)),
                       Held(python.function(&methods[1], nullptr, nullptr)),
                       Held(python.function(&methods[2], nullptr, nullptr))};
  return python.pack(3, made[0].get(), made[1].get(), made[2].get());
}

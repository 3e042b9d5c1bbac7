#include "check/ptx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "check/user_json.h"
#include "support/diagnostic.h"
#include "support/intern.h"

namespace tilewright::checks {
namespace {

using Json = nlohmann::ordered_json;

class PtxLaunchReader {
 public:
  PtxLaunchReader(const std::string& file, std::uint64_t seed) : file_(file), seed_(seed) {}

  PtxLaunch run(const Json& json) {
    if (!json.is_object()) fail("it is no object", "{\"grid\": [1], \"block\": [128], ...}");
    for (const auto& [key, value] : json.items()) {
      if (key == "kernel") {
        if (!value.is_string()) fail("kernel is no text", "name a kernel of the PTX");
        launch_.kernel = value;
      } else if (key == "grid") {
        launch_.input.grid = extents(key, value);
      } else if (key == "block") {
        launch_.input.block = extents(key, value);
      } else if (key == "cluster") {
        launch_.input.cluster = integer(key, value, 1, 16);
      } else if (key == "shared") {
        launch_.input.dynamic_shared_bytes = integer(key, value, 0, 1 << 20);
      } else if (key == "arguments") {
        if (!value.is_array()) fail("arguments is no list", "list them as the kernel takes them");
        for (const Json& each : value) argument(each);
      } else {
        fail(fmt::format("{} is not known", key),
             "take kernel, grid, block, cluster, shared and arguments");
      }
    }
    return std::move(launch_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& fix) const {
    Diagnostic({intern(file_), 1}, file_ + ": " + what).fix(fix).raise();
  }

  std::int64_t integer(const std::string& key, const Json& value, std::int64_t low,
                       std::int64_t high) const {
    if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      if (number >= low && number <= high) return number;
    }
    fail(fmt::format("{} is {}", key, value.dump()),
         fmt::format("take one of {} to {}", low, high));
  }

  std::array<std::int64_t, 3> extents(const std::string& key, const Json& value) const {
    std::array<std::int64_t, 3> result{1, 1, 1};
    if (!value.is_array() || value.empty() || value.size() > 3) {
      fail(fmt::format("{} is {}", key, value.dump()), "take a list of one to three numbers");
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      result[i] = integer(key, value[i], 1, INT32_MAX);
    }
    return result;
  }

  template <typename T>
  void put(T value) {
    std::vector<std::byte>& bytes = launch_.input.parameters.emplace_back(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    launch_.of_argument.push_back(SIZE_MAX);
  }

  void argument(const Json& value) {
    const auto is = [&](const char* key) { return value.is_object() && value.contains(key); };
    const auto number = [&](const char* key) {
      const Json& of = value.at(key);
      if (!of.is_number()) fail(fmt::format("{} is {}", key, of.dump()), "take a number");
      return of;
    };
    if (is("tensor")) return tensor(value);
    if (is("i32")) {  // or u32
      return put(
          static_cast<std::uint32_t>(integer("i32", value.at("i32"), INT32_MIN, UINT32_MAX)));
    }
    if (is("i64")) return put(integer("i64", value.at("i64"), INT64_MIN, INT64_MAX));
    if (is("f32")) return put(number("f32").get<float>());
    if (is("f64")) return put(number("f64").get<double>());
    if (is("null")) return put(std::uint64_t{0});
    fail(fmt::format("argument {} is {}", launch_.of_argument.size(), value.dump()),
         "take {\"tensor\": NAME, \"dtype\": ..., \"shape\": [...]}, {\"i32\": N}, {\"i64\": N}, "
         "{\"f32\": X}, {\"f64\": X} or {\"null\": true}");
  }

  void tensor(const Json& value) {
    const std::string name = value.at("tensor").is_string() ? value.at("tensor") : Json("tensor");
    const Json type = value.value("dtype", Json());
    const Json shape = value.value("shape", Json());
    if (!type.is_string() || !shape.is_array()) {
      fail(fmt::format("tensor {} has no dtype or no shape", name),
           "\"dtype\": \"f32\", \"shape\": [64, 64]");
    }
    std::optional<DType> dtype;
    for (const DType each : {f32, f16, bf16, f8e4m3, i32, i64, i8, u8, u32}) {
      if (name_of(each) == type.get<std::string>()) dtype = each;
    }
    if (!dtype)
      fail(fmt::format("{} is no dtype", type.dump()),
           "f32, f16, bf16, f8e4m3, i32, i64, i8, u8, u32");
    std::vector<std::int64_t> sizes;
    std::int64_t elements = 1;
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    for (const Json& size : shape) {
      sizes.push_back(integer("a size of " + name, size, 0, kMost));
      elements *= std::max<std::int64_t>(sizes.back(), 1);
      if (elements > kMost)
        fail(fmt::format("tensor {} is too large", name), "take fewer elements");
    }
    // Of all tensors together: a file must not take what memory the machine has.
    constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;
    bytes_ += elements * size_of(*dtype);
    if (bytes_ > kMostBytes) {
      fail(fmt::format("with tensor {} the tensors have {} bytes", name, bytes_),
           fmt::format("take no more than {} together", kMostBytes));
    }
    const Json values = value.value("values", Json("random"));
    if (values != "random" && values != "zeros" && values != "nothing") {
      fail(fmt::format("values of {} are {}", name, values.dump()),
           "take random, zeros or nothing");
    }
    launch_.tensors.push_back(values == "random" ? HostTensor::random_normal(*dtype, sizes, ++seed_)
                              : values == "zeros" ? HostTensor::zeros(*dtype, sizes)
                                                  : HostTensor::poisoned(*dtype, sizes));
    launch_.names.push_back(name);
    put(std::uint64_t{0});
    launch_.of_argument.back() = launch_.tensors.size() - 1;
  }

  const std::string& file_;
  std::uint64_t seed_;
  std::int64_t bytes_ = 0;
  PtxLaunch launch_;
};

}  // namespace

PtxLaunch read_ptx_launch(const std::string& text, const std::string& file, std::uint64_t seed) {
  return PtxLaunchReader(file, seed)
      .run(parse_user_json(text, file,
                           "write {\"grid\": [1], \"block\": [128], ...} (docs/debugging.md)"));
}

std::int64_t room_for_ctas(const ptx::Kernel& kernel, const ptx::LaunchInput& input) {
  constexpr std::int64_t kMultiprocessors = 132, kCtas = 32, kThreads = 2048, kShared = 228 << 10;
  const std::int64_t threads = ptx::volume(input.block);
  const std::int64_t shared = kernel.static_shared_bytes + input.dynamic_shared_bytes + 1024;
  return kMultiprocessors *
         std::clamp<std::int64_t>(
             std::min(kThreads / std::max<std::int64_t>(threads, 1), kShared / shared), 1, kCtas);
}

PtxRun run_ptx(const ptx::Module& module, const PtxLaunch& launch, std::uint64_t seed,
               std::int64_t most_operations) {
  const ptx::Kernel* kernel = launch.kernel.empty() && module.kernels.size() == 1
                                  ? &module.kernels[0]
                                  : module.find(launch.kernel);
  if (!kernel) {
    std::string names;
    for (const ptx::Kernel& each : module.kernels) names += (names.empty() ? "" : ", ") + each.name;
    Diagnostic({}, launch.kernel.empty() ? "the launch names no kernel"
                                         : "there is no kernel " + launch.kernel)
        .fix("\"kernel\": one of " + names)
        .raise();
  }
  PtxRun run;
  run.tensors = launch.tensors;
  ptx::LaunchInput input = launch.input;
  for (std::size_t i = 0; i < input.parameters.size(); ++i) {
    const std::size_t number = launch.of_argument[i];
    if (number == SIZE_MAX) continue;
    HostTensor& tensor = run.tensors[number];
    const auto address = reinterpret_cast<std::uint64_t>(tensor.data());
    std::memcpy(input.parameters[i].data(), &address, sizeof(address));
    input.memory.push_back({launch.names[number], address, address + tensor.size_bytes()});
  }
  // Pointers that a compiler adds for itself, such as to scratch memory that a kernel does not use.
  while (input.parameters.size() < kernel->parameters.size()) {
    const auto bytes = static_cast<std::size_t>(kernel->parameters[input.parameters.size()].bytes);
    if (bytes != 8) break;
    input.parameters.emplace_back(bytes);
  }
  input.seed = seed;
  input.timing = seed % 2 == 0 ? ptx::Timing::early : ptx::Timing::late;
  input.check_order = true;
  constexpr std::int64_t kCtasAtATime = 4;
  const std::int64_t cluster = std::max<std::int64_t>(input.cluster, 1);
  input.resident = std::max<std::int64_t>(kCtasAtATime / cluster, 1);
  input.most_resident = std::max(room_for_ctas(*kernel, input) / cluster, input.resident);
  input.most_operations = most_operations;
  run.report = ptx::execute(*kernel, input);
  if (!run.report.faults.empty() && run.report.faults.front().kind == "launch") {
    Diagnostic({}, run.report.faults.front().message)
        .fix("\"grid\", \"block\", \"cluster\" and \"arguments\" as " + kernel->name +
             " wants them")
        .raise();
  }
  return run;
}

bool is_another_result(const HostTensor& first, const HostTensor& second) {
  if (first == second) return false;
  const DType dtype = first.dtype();
  if (!is_float(dtype) || size_of(dtype) < 2) return true;
  const double bound = dtype == DType::f32 ? 0x1p-18 : 0x1p-7;
  double squares = 0, finite = 0;
  for (std::int64_t i = 0; i < first.elements(); ++i) {
    const double value = first.flat(i);
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++finite;
  }
  const double least = bound * std::sqrt(squares / std::max(finite, 1.0));
  for (std::int64_t i = 0; i < first.elements(); ++i) {
    const double a = first.flat(i), b = second.flat(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= std::max(bound * std::abs(a), least))) return true;
    if (!std::isfinite(a) || !std::isfinite(b)) return true;
  }
  return false;
}

}  // namespace tilewright::checks

#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/c_api.h"
#include "tilewright/compile.h"

// What the examples' programs share: the target of the command line, the comparison, and how
// programs in other languages launch their kernels.
namespace tilewright::examples {

// "--target cpu" (the default: the tensors are the host's), "interpreter", "sim:sm_90a",
// "passes:sm_90a" or "sm_90a" (built and checked, not run).
inline std::string target_of(int argc, char** argv) {
  if (argc == 1) return "cpu";
  if (argc == 3 && std::strcmp(argv[1], "--target") == 0) return argv[2];
  throw Error(ErrorKind::usage, {}, "arguments",
              std::string("usage: ") + argv[0] +
                  " [--target cpu|interpreter|sim:sm_90a|passes:sm_90a|sm_90a]");
}

// Of every element, by its row-major number: the root mean square of what differs, relative to
// that of what is wanted. NaN, which an element that nobody wrote holds, makes it NaN.
inline double relative_error(const HostTensor& got, const std::vector<double>& wanted) {
  double squares = 0, squared_errors = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double want = wanted.at(static_cast<std::size_t>(i)), error = got.flat(i) - want;
    squares += want * want;
    squared_errors += error * error;
  }
  return std::sqrt(squared_errors / squares);
}

// Compiles the kernel for the target of the command line and runs each case, which returns its
// relative error; the program's exit status.
inline int run(int argc, char** argv, const Kernel& kernel, double bound,
               const std::vector<std::function<double(const Executable&)>>& cases) {
  try {
    const std::string target = target_of(argc, argv);
    const Executable executable = compile(kernel, target);
    if (target.find("sm_") == 0) {
      std::printf("%s: compiles for %s\n", kernel.name().c_str(), target.c_str());
      return 0;
    }
    double worst = 0;
    for (const auto& one : cases) {
      const double error = one(executable);
      if (!(error <= worst)) worst = error;  // NaN is worse than any
      if (std::isnan(worst)) break;
    }
    std::printf("%s: relative RMS error %.2e against float64, on %s\n", kernel.name().c_str(),
                worst, target.c_str());
    return worst < bound ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}

// One launch of the kernel that `make` returns on tensors in the GPU's memory, queued on a stream;
// the status of tilewright/c_api.h. The first call compiles.
template <typename Make>
int launch(const Make& make, const tilewright_tensor* tensors, std::int32_t count, void* stream) {
  try {
    static const Executable executable = compile(make(), "cuda");
    std::vector<TensorRef> arguments;
    for (const tilewright_tensor* t = tensors; t != tensors + count; ++t) {
      TensorRef argument{t->data, parse_dtype(t->dtype), {t->shape, t->shape + t->rank}, {}};
      if (t->strides) argument.strides.assign(t->strides, t->strides + t->rank);
      arguments.push_back(std::move(argument));
    }
    executable.run(arguments, {}, stream);
    return TILEWRIGHT_OK;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}

}  // namespace tilewright::examples

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "simulator/interpreter.h"
#include "simulator/kernel_builder.h"
#include "tilewright/error.h"
#include "tilewright/host_tensor.h"

// Kernels of one block, run by the interpreter.
namespace tilewright::simulator {

using Id = ir::ValueId;
using Shape = std::vector<std::int64_t>;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline TensorArgument argument(HostTensor& tensor) {
  return {"tensor", tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()};
}

inline void run(const ir::Kernel& kernel, const std::vector<HostTensor*>& tensors,
                const InterpreterOptions& options = {}, std::vector<double> scalars = {}) {
  Arguments arguments;
  for (HostTensor* tensor : tensors) arguments.tensors.push_back(argument(*tensor));
  arguments.scalars = std::move(scalars);
  interpret(kernel, arguments, options);
}

// The rows of a larger tensor whose other elements are NaN.
struct Padded {
  HostTensor memory;
  TensorArgument argument;
};
inline Padded padded(const HostTensor& tensor) {
  const Shape& shape = tensor.shape();
  Padded result{HostTensor::poisoned(tensor.dtype(), {shape[0] + 3, shape[1] + 5}), {}};
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    for (std::int64_t j = 0; j < shape[1]; ++j) result.memory.set({i, j}, tensor.at({i, j}));
  }
  result.argument = {"padded", tensor.dtype(), shape, result.memory.strides(),
                     result.memory.data()};
  return result;
}

// Runs one block that computes a tile from the kernel's tensors and stores it to the last of them.
inline HostTensor evaluate(std::vector<HostTensor> inputs, DType dtype, Shape shape,
                           const std::function<Id(KernelBuilder&, const std::vector<Id>&)>& body,
                           const InterpreterOptions& options = {}) {
  KernelBuilder b;
  std::vector<Id> tiles, tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& size = inputs[i].shape();
    tensors.push_back(b.tensor("in" + std::to_string(i), inputs[i].dtype(),
                               std::vector<Dim>(size.begin(), size.end())));
  }
  const Id out = b.tensor("out", dtype, std::vector<Dim>(shape.begin(), shape.end()));
  const Id zero = b.integer(0), far = b.integer(1 << 20);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t rank = inputs[i].shape().size();
    tiles.push_back(b.load(tensors[i], std::vector<Id>(rank, zero), std::vector<Id>(rank, far),
                           inputs[i].shape()));
  }
  const Id result = body(b, tiles);
  b.store(out, result, std::vector<Id>(shape.size(), zero), std::vector<Id>(shape.size(), far),
          shape);
  HostTensor output = HostTensor::poisoned(dtype, shape);
  std::vector<HostTensor*> all;
  for (HostTensor& input : inputs) all.push_back(&input);
  all.push_back(&output);
  run(b.finish(), all, options);
  return output;
}

inline HostTensor column(DType dtype, const std::vector<double>& values) {
  return HostTensor::from_values(dtype, {static_cast<std::int64_t>(values.size())}, values);
}

// The text of the error that `action` raises, and its line.
inline std::pair<std::string, int> error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    return {error.message(), error.location().line};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace tilewright::simulator

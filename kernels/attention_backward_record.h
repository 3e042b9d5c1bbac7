#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_parameters.h"
#include "tilewright/kernels/attention.h"

// The kernels of attention_backward in a program of others.
namespace tilewright::kernels {

struct BackwardTensors {
  Buffer Q, K, V;
  std::vector<Buffer> offsets;  // of packed sequences
  Buffer O, LSE, dO;
  std::optional<Buffer> sinks, dLSE;
  // The rows' statistics, where they are made beforehand. O, LSE and dLSE are then read no more.
  std::optional<Buffer> L, D;
  Buffer dQ, dK, dV;
  std::optional<Buffer> dsinks;
};

using BackwardKernels = std::map<std::string, Kernel>;

// What is recorded where.
template <typename Shapes>
struct BackwardRecording {
  Program& program;
  std::string name;  // of its kernels
  const Shapes& shapes;
  const BackwardTensors& tensors;
  std::vector<Stream> streams;  // of each rank one
  BackwardKernels& kernels;     // by their names: those of a program are made once
  std::string suffix = {};      // of its scratch
};

// The statistics of rows. record_backward reads them with rows of zeros behind the last, to a whole
// block of queries.
Kernel backward_statistics(const Attention& attention, bool of_lse, const std::string& name);
// The same of all rows of a packed axis, whichever sequences have them.
Kernel packed_backward_statistics(const Attention& attention, bool of_lse, const std::string& name);

void record_backward(const Attention& attention, const BackwardRecording<BatchShapes>& to,
                     bool is_sm90, const Caller& caller);
void record_backward(const Attention& attention, const BackwardRecording<PackedShapes>& to,
                     bool is_sm90, const Caller& caller);

}  // namespace tilewright::kernels

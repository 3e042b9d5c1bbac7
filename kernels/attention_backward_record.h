#pragma once

#include <optional>
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
  Buffer dQ, dK, dV;
  std::optional<Buffer> dsinks;
};

// On a stream of each rank, of sequences of one length.
void record_backward(Program& program, const Attention& attention, const BatchShapes& shapes,
                     const BackwardTensors& tensors, const std::vector<Stream>& streams,
                     bool is_sm90, const Caller& caller);

}  // namespace tilewright::kernels

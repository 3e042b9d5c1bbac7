#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_backward_record.h"
#include "kernels/attention_backward_sequences.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/plan_case.h"

// What all programs of attention_backward have: the statistics of rows before the main part, and
// the gradient of sinks behind it. `Sequences`: Batch or Packed.
namespace tilewright::kernels {

inline constexpr int kStatisticRows = 64;

// Whether the kernel of statistics writes all that is kept of blocks of `multiple` rows, so that
// nothing has to set it to zero before. Blocks of another size than its own are slower.
template <typename Sequences>
constexpr bool sets_all(int multiple) {
  return Sequences::kFills && multiple == kStatisticRows;
}

// What the kernel of statistics is to write.
struct StatisticsPlan {
  bool of_lse;   // LSE has a gradient
  int multiple;  // of the rows that L and D have
  int turns;     // words of each block of so many rows, which it sets to 0
};

// LSE in powers of two, and D. Behind the last query both are 0, by this kernel or before it.
template <typename Sequences>
Kernel statistics_of_rows(const Attention& attention, const StatisticsPlan& plan,
                          const std::string& name);
// dLoss/dsink = - sum over the rows of exp(sink - LSE) D. One CTA has all rows of a head.
template <typename Sequences>
Kernel sink_gradient(const Attention& attention, int multiple, const std::string& name);

struct BackwardBuffers {
  Buffer Q, K, V, dO, L, D, dQ, dK, dV;
  std::optional<Buffer> turns;
};

// Launches on a stream of each rank.
struct Launches {
  using Make = std::function<Kernel(const std::string& name)>;
  const std::vector<Stream>& streams;
  BackwardKernels& kernels;
  void launch(const std::string& name, const Make& make, const std::vector<Part>& parts) const {
    auto kernel = kernels.find(name);
    if (kernel == kernels.end()) kernel = kernels.emplace(name, make(name)).first;
    for (const Stream& stream : streams) stream.launch(kernel->second, parts);
  }
};

template <typename Sequences>
using Recording = BackwardRecording<typename Sequences::Shapes>;

// `launch` is the main part, from the statistics to dQ, dK and dV. It is given `turns` words for
// each block of queries, which are 0. Statistics have whole blocks of rows, of which those behind
// the last query are 0.
template <typename Sequences, typename Launch>
void record_gradients(const Attention& a, int turns, const Recording<Sequences>& to,
                      const Launch& launch) {
  Program& program = to.program;
  const typename Sequences::Shapes& like = to.shapes;
  const BackwardTensors& t = to.tensors;
  const std::string& name = to.name;
  const Launches stream{to.streams, to.kernels};
  const int multiple = a.block_q;
  const bool are_set = !t.L && sets_all<Sequences>(multiple);
  const auto memory = [&](const char* of, DType dtype, const std::vector<Dim>& shape) {
    return are_set ? program.scratch(of + to.suffix, dtype, shape)
                   : program.zeroed(of + to.suffix, dtype, shape);
  };
  const auto made = [&](const std::optional<Buffer>& before, const char* of) {
    return before ? *before : memory(of, f32, like.of_rows(multiple));
  };
  const Buffer L = made(t.L, "L"), D = made(t.D, "D");
  std::optional<Buffer> words;
  if (turns > 0) words = memory("turns", i32, {like.kept_blocks(multiple) * turns});
  const auto with_offsets = [&](Of of, std::vector<Part> parts) {
    const auto half = static_cast<std::ptrdiff_t>(t.offsets.size() / 2);
    parts.insert(parts.begin(), t.offsets.begin() + (of == Of::keys ? half : 0),
                 of == Of::queries ? t.offsets.begin() + half : t.offsets.end());
    return parts;
  };
  if (!t.L) {
    std::vector<Part> read = {t.O, t.dO, t.LSE};
    if (t.dLSE) read.push_back(*t.dLSE);
    read.insert(read.end(), {L, D});
    if (words && are_set) read.push_back(*words);
    stream.launch(
        name + "_statistics",
        [&](const std::string& of) {
          return statistics_of_rows<Sequences>(
              a, {t.dLSE.has_value(), multiple, are_set ? turns : 0}, of);
        },
        with_offsets(Of::queries, read));
  }
  launch(program, like, stream, BackwardBuffers{t.Q, t.K, t.V, t.dO, L, D, t.dQ, t.dK, t.dV, words},
         with_offsets);
  if (plan_case("sinks", a.sinks)) {
    stream.launch(
        name + "_sinks",
        [&](const std::string& of) { return sink_gradient<Sequences>(a, multiple, of); },
        with_offsets(Of::queries, {*t.sinks, L, D, *t.dsinks}));
  }
}

// Without sums that are divided among CTAs.
template <typename Sequences>
void deterministic_backward(const Attention& attention, const Recording<Sequences>& to);
// In five products instead of seven, where a part of the keys adds to sums of its own in memory.
void backward_in_parts(const Attention& attention, const Recording<Batch>& to);

}  // namespace tilewright::kernels

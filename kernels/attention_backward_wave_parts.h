#pragma once

#include <optional>

#include "kernels/attention_backward_shared.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_backward_wave.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

// The last wave's blocks of keys in a kernel that divides them, and the memory in which the parts
// of a block add their dK and dV.
class WaveParts {
 public:
  // Where the last wave is not divided there is none.
  template <typename Keys>
  static std::optional<WaveParts> of(Kernel& kernel, const Attention& a, const BackwardPlan& plan,
                                     const Keys& sequences) {
    if constexpr (Keys::kOneLength) {
      if (plan.divides) {
        return WaveParts(kernel, a, LastWave(sequences.count(), sequences.row_blocks()));
      }
    }
    return std::nullopt;
  }

  const LastWave& wave() const { return wave_; }
  SharedSums shared_sums(Kernel& kernel) const {
    const int words = LastWave::kMostBlocks * shape_.warps() * 2 * shape_.words_of_warp();
    return {shape_, sums_, kernel.workspace("turns_of_parts", words), 0};
  }
  static SharedSums::Place place_of_sums(const Index& word) {
    const auto [block, parts] = LastWave::divided(word);
    return {block, 0, parts};
  }

 private:
  WaveParts(Kernel& kernel, const Attention& a, const LastWave& wave)
      : wave_(wave),
        lines_(kernel.dim("lines_of_parts", multiple_of(lines_of_block(a)))),
        shape_(KeyTiles::of(a), wave_.blocks(), lines_, Order::any),
        sums_(kernel.inout("key_sums", f32, {lines_, SharedSumsShape::kLine})) {}

  LastWave wave_;
  Dim lines_;
  SharedSumsShape shape_;
  Tensor sums_;
};

}  // namespace tilewright::kernels

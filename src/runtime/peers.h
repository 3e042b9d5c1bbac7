#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/device.h"

// What GPUs and their streams have to do with each other.
namespace tilewright::runtime {

// From here on `device` reaches the memory of `other`. Error(unavailable) where it cannot.
void reach_peer(const Device& device, const Device& other);

// The same GPU has the same in all processes, whatever CUDA_VISIBLE_DEVICES is: "GPU-" and 32
// hexadecimal digits.
std::string unique_name(const Device& device);

// Whether all that was queued has ended. Also reports what failed.
bool is_idle(const Stream& stream);

// What a stream does at a word: sets it, once what came before in the stream is there for
// everybody; or lets what follows wait until it is at least the value, by the sign of the
// difference modulo 2^32, or until it is the value.
struct WordOperation {
  enum class Kind : std::uint8_t { write, wait_at_least, wait_equal };
  Kind kind = Kind::write;
  void* word = nullptr;
  std::int32_t value = 0;
};
// In their order, by as few of the driver's calls as there may be. Errors say `about` what they
// are.
void queue_words(const Stream& stream, std::span<const WordOperation> operations,
                 std::string_view about = {});

}  // namespace tilewright::runtime

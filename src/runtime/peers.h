#pragma once

#include <cstdint>
#include <string>

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

// Sets the word, once what came before in the stream is there for everybody.
void write_word(const Stream& stream, void* word, std::int32_t value);
// What follows in the stream waits until the word is at least the value, by the sign of the
// difference modulo 2^32.
void wait_word(const Stream& stream, void* word, std::int32_t value);

}  // namespace tilewright::runtime

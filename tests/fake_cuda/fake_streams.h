#pragma once

#include <functional>

#include "runtime/cuda_api.h"

// Streams and events that are handles and nothing else, or, where a test asks for it, queues whose
// work threads do.
namespace fake_cuda {

namespace cuda = tilewright::runtime::cuda;

// At once, or behind what the stream was given before.
void submit(cuda::Stream stream, std::function<void()> work);

cuda::Stream new_queue();
// False for what is no queue. Work that waits for a word is given up.
bool end_queue(cuda::Stream stream);
void drain(cuda::Stream stream);
bool is_idle(cuda::Stream stream);
// Until the word is at least the value, or the queue ends.
// Until the word is at least the value, or is the value.
void wait_for_word(cuda::Stream stream, const void* word, std::int32_t value, bool equal);

// Of queues: how often the event was recorded, and which of these records was reached.
cuda::Event new_event();
bool end_event(cuda::Event event);
void record(cuda::Event event, cuda::Stream stream);
void wait_for_event(cuda::Stream stream, cuda::Event event);
bool has_come(cuda::Event event);

}  // namespace fake_cuda

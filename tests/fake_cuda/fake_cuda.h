#pragma once

#include <cstddef>
#include <cstdint>

// A tensor map as the driver is told of it.
struct FakeTensorMap {
  int type, interleave, swizzle, promotion, fill;
  std::uint32_t rank;
  std::uint64_t sizes[5], strides[4];
  std::uint32_t box[5], element_strides[5];
};

// What tests read and set of the fake driver, through the symbol `fake_cuda_state` of its library.
struct FakeCudaState {
  // Set by tests.
  int init_result;
  int device_count;
  int max_threads;               // of a block, by what the kernels were compiled for
  int static_shared;             // bytes that the kernels have without asking
  int synchronise_milliseconds;  // that waiting for a stream takes
  int capability;                // its major number; 0: 9
  int capturing;                 // whether all streams are
  int capture_mode;              // of all threads
  int reaches_nobody;            // whether no device maps shared memory
  int visible[8];                // of each number the GPU that it is, plus 1; 0: of that number
  int without_descriptors;       // whether no device hands out descriptors of its memory
  int without_peers;             // whether no device reaches another one's memory
  int without_atomics;           // whether none reaches it with atomics
  int next_result;               // returned once, by the next call of those that can fail
  int (*executes)(void** arguments);  // stands for the kernel: what waiting for the stream returns
  // Whether new streams are queues, whose work is done while the test goes on, by threads.
  int has_queues;
  // Stands for the kernel in a queue: what it takes of the arguments when it is launched, and what
  // it does with that when its turn comes.
  void* (*takes)(void** arguments);
  void (*executes_taken)(void* taken);
  // Counted or recorded by the driver.
  int live_allocations;
  int live_handles;  // streams, events and modules
  int allocations;   // so far
  int launches;
  int launched_on;       // the device that was current
  int asked_on;          // the same, when something was asked for that belongs to a device
  const char* launched;  // the kernel's name
  int ended_queues_with_work;
  int memsets;
  int copies;
  int copies_on_default;  // stream
  int word_calls;         // that write words or wait for them
  unsigned last_word;     // that was written
  unsigned grid[3], block[3], cluster[3];
  int cooperative;
  unsigned shared_bytes;
  unsigned attribute_count;
  int dynamic_shared_limit;
  int large_clusters;  // whether they were asked for
  void** arguments;    // of the last launch
  void* map_base;
  FakeTensorMap map;  // the last one
};

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dtype.h"

// What chips of a target have: they differ in how much, and run the same programs.
namespace tilewright::target {

// What goes between GPUs, as it was measured: what the simulator's clock is made of. A GPU sends
// and receives at once.
struct Link {
  // Bytes a second to one other, or to all of them together, each way while both directions are
  // busy.
  double stored = 0;   // by multiprocessors
  double reduced = 0;  // added to what is there
  double loaded = 0;   // asked for by multiprocessors
  double copied = 0;   // by a copy engine
  // What one multiprocessor sends, in bytes a cycle, beside products too.
  double sent = 0;
  // Seconds.
  double arrival = 0;       // from the last byte on the wire until it is in the other's memory
  double answer = 0;        // of a load or an atomic operation in another's memory
  double word = 0;          // until who polls its own memory sees a word that another one stores
  double release = 0;       // that a release or a fence of the system takes once all has arrived
  double engine_start = 0;  // what a copy takes beside its bytes
  double stream_word = 0;   // what a word that a stream writes behind a copy takes
  double stream_wait = 0;   // from a word's or an event's being there until a stream goes on
  double launch = 0;        // from the end of what is before a kernel in its stream to its start
};

struct Device {
  std::string name;    // "H200 SXM"
  std::string target;  // "sm_90a"
  std::string source;
  bool has_run =
      true;  // a kernel on one: what it reaches was measured, and is not taken from another
  int multiprocessors = 0;
  double clock = 0;          // Hz, at which the peaks below hold
  double memory_bytes = 0;   // a second
  double peer_bytes = 0;     // a second, to other GPUs in one direction
  std::int64_t l2_size = 0;  // bytes
  // Peaks of a second, without sparsity.
  double half_flops = 0;     // products of bf16 and f16 on the tensor cores
  double quarter_flops = 0;  // of f8 and i8
  double single_flops = 0;   // f32 outside of the tensor cores

  Link link;

  double flops(DType dtype) const;

  // What kernels were seen to reach: what the model of costs takes for the device.
  struct Reached {
    double clock = 0;          // Hz, under load
    double product_clock = 0;  // Hz, under products without a pause, by the power that they take
    double product_share = 0;  // of the tensor cores' peak at `clock`, where all multiply
    double l2_bytes = 0;       // a cycle and multiprocessor, where all load
    double l2_idle = 0;        // where fewer do, a byte takes this share of its time at least
    // Of a byte's time more, in rows that begin in the middle of a line of 128 bytes, and of a
    // sector. `stride`: in bytes, which decides how many of the rows do.
    double between_lines = 0, between_sectors = 0;
    double longer_in_rows(std::int64_t stride) const;
    // In memory, of the time of a byte that is read: that of one that is written, and of it more
    // where its row begins in the middle of a sector.
    double written = 1, written_between_sectors = 0;
    double written_in_rows(std::int64_t stride) const;
    // A cycle, by all multiprocessors together, of what copies for several CTAs find behind a
    // tensor's ends: it comes from one place.
    double shared_zero_bytes = 0;
    double power = 0;  // of products' time saved where the others pause
    // A long run of products draws more power than the device may, and its clock falls: in the end
    // they take this share longer, half of it in runs of so many seconds.
    double slowing = 0, slows_in = 1;
    double remote_bytes = 0;  // a cycle and multiprocessor, from another CTA's shared memory
    // Cycles that CTAs lose where those of a cluster meet: once, and for each of them.
    double cluster_wait = 0, cluster_wait_each = 0;
    double added_bytes = 0;  // a cycle and multiprocessor, to sums in memory
    double turn = 0;  // cycles from one addition to the next one to a sum that CTAs add to in turn
    double tensor_bytes = 0;        // the same of tensor memory, by threads and products together
    double scalar_latency = 0;      // cycles from a scalar instruction to one that needs it
    double store_read_latency = 0;  // cycles until an asynchronous store has read shared memory
    double stage_latency = 0;       // from asking for a stage of a ring until it is multiplied
    double product_wait = 0;    // cycles for which the tensor cores pause where a warpgroup waits
    double received_bytes = 0;  // a cycle, by copies to shared memory, whoever asks
    double thread_store_bytes = 0;   // the same by threads to global memory
    double cluster_seconds = 0;      // that a launch of clusters takes longer
    double memory_bytes = 0;         // a second
    double launch_seconds = 0;       // with cold caches, that of code among them
    double next_launch_seconds = 0;  // the same of a launch that is queued behind another one
  } reached;
};

const std::vector<Device>& devices();
std::vector<const Device*> devices_of(std::string_view target);
// The first of the target's.
const Device& device_of(std::string_view target);

}  // namespace tilewright::target

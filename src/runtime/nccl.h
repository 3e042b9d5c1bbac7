#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.h"

struct ncclComm;

// NCCL, loaded at run time: what ranks send each other that do not reach each other's memory.
namespace tilewright::runtime {

struct NcclFunctions;

// Loaded at the first call, as libnccl.so.2 or what TILEWRIGHT_NCCL names, and kept until the
// process ends. Error(unavailable) where there is none, or one older than 2.14.
const NcclFunctions& nccl();

// By one of those that are to meet, for all of them.
std::string new_nccl_id();

// What is sent to a rank, or comes from it.
struct NcclTransfer {
  enum class Kind { send, receive };
  Kind kind = Kind::send;
  int rank = 0;
  std::byte* at = nullptr;
  std::size_t bytes = 0;
};

// Ranks of a group that send to each other. All calls of NCCL return at once; until what they ask
// for has come, `keep_waiting` is called, and what it raises ends the wait. Failures raise
// Error(unavailable) that names the call and NCCL's reason.
class NcclCommunicator {
 public:
  using KeepWaiting = std::function<void()>;

  // By all of `ranks`, with the same id.
  NcclCommunicator(const Device& device, const std::string& id, int own, std::vector<int> ranks,
                   const KeepWaiting& keep_waiting);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // In the stream, all at once; what one rank sends another gets in the order of the lists. Errors
  // say `about` what it is.
  void queue(std::span<const NcclTransfer> transfers, const Stream& stream,
             const KeepWaiting& keep_waiting, std::string_view about) const;

  // Raises what has failed behind earlier calls.
  void require_sound(std::string_view about) const;
  // What is under way ends, undone; nothing more can be sent.
  void abort() noexcept;

 private:
  void queue(const NcclTransfer& transfer, const Stream& stream, std::string_view about) const;
  void wait_until_done(const KeepWaiting& keep_waiting, const char* call,
                       std::string_view about) const;
  void check(int result, std::string_view call, std::string_view about) const;

  const NcclFunctions& nccl_;
  const Device& device_;
  const std::vector<int> ranks_;
  ncclComm* communicator_ = nullptr;
};

}  // namespace tilewright::runtime

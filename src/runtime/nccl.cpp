#include "runtime/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "runtime/dynamic_library.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
// The part of NCCL's binary interface that is called here, by nccl.h of 2.14 and later.
struct NcclFunctions {
  using Result = int;
  static constexpr Result kSuccess = 0, kInProgress = 7;
  static constexpr int kBytes = 0;  // ncclInt8
  static constexpr int kOldest = 21400;
  struct UniqueId {
    char bytes[128];
  };
  // As 2.14 has it: later versions take their own defaults for what it lacks.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = kOldest;
    int blocking = 0;
  };

  DynamicLibrary library;
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*init_rank)(ncclComm**, int size, UniqueId, int rank, Config*) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*send)(const void*, std::size_t, int type, int peer, ncclComm*, CUstream_st*) = nullptr;
  Result (*receive)(void*, std::size_t, int type, int peer, ncclComm*, CUstream_st*) = nullptr;
  Result (*get_async_error)(ncclComm*, Result*) = nullptr;
  Result (*destroy)(ncclComm*) = nullptr;
  Result (*abort)(ncclComm*) = nullptr;
  const char* (*error_text)(Result) = nullptr;
};

namespace {

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

LibraryRequest nccl_request() {
  LibraryRequest request;
  if (const char* chosen = std::getenv("TILEWRIGHT_NCCL"); chosen != nullptr && *chosen != '\0') {
    request.what = "the NCCL library named by TILEWRIGHT_NCCL";
    request.candidates = {chosen};
    request.how_to_get_it = "unset TILEWRIGHT_NCCL, or set it to the path of libnccl.so.2";
    return request;
  }
  request.what = "NCCL, by which ranks of different nodes send to each other";
  request.candidates = {"libnccl.so.2"};
  request.how_to_get_it =
      "install NCCL 2.14 or later, or set TILEWRIGHT_NCCL to the path of libnccl.so.2, such as "
      "that "
      "of PyTorch: python3 -c 'import nvidia.nccl; print(*nvidia.nccl.__path__)'";
  return request;
}

template <typename Function>
void bind_nccl(Function*& function, const DynamicLibrary& library, const char* symbol) {
  if (library.bind(function, symbol)) return;
  Diagnostic({}, fmt::format("{} has no {}", library.path(), symbol), ErrorKind::unavailable)
      .fix("NCCL 2.14 or later, named by TILEWRIGHT_NCCL")
      .raise();
}

NcclFunctions loaded_nccl() {
  NcclFunctions made;
  made.library = DynamicLibrary::open_first(nccl_request());
  NcclFunctions::Result (*get_version)(int*) = nullptr;
  bind_nccl(get_version, made.library, "ncclGetVersion");
  int version = 0;
  if (get_version(&version) != NcclFunctions::kSuccess || version < NcclFunctions::kOldest) {
    Diagnostic(
        {},
        fmt::format("{} is NCCL {}, and sends that can be ended need {}", made.library.path(),
                    nccl_version_text(version), nccl_version_text(NcclFunctions::kOldest)),
        ErrorKind::unavailable)
        .fix("a later NCCL, named by TILEWRIGHT_NCCL")
        .raise();
  }
  bind_nccl(made.get_unique_id, made.library, "ncclGetUniqueId");
  bind_nccl(made.init_rank, made.library, "ncclCommInitRankConfig");
  bind_nccl(made.group_start, made.library, "ncclGroupStart");
  bind_nccl(made.group_end, made.library, "ncclGroupEnd");
  bind_nccl(made.send, made.library, "ncclSend");
  bind_nccl(made.receive, made.library, "ncclRecv");
  bind_nccl(made.get_async_error, made.library, "ncclCommGetAsyncError");
  bind_nccl(made.destroy, made.library, "ncclCommDestroy");
  bind_nccl(made.abort, made.library, "ncclCommAbort");
  bind_nccl(made.error_text, made.library, "ncclGetErrorString");
  return made;
}

[[noreturn]] void refuse_nccl(const NcclFunctions& nccl, NcclFunctions::Result result,
                              std::string_view call, std::string_view about) {
  Diagnostic(
      {},
      fmt::format("{}{}{}: {}", call, about.empty() ? "" : " in ", about, nccl.error_text(result)),
      ErrorKind::unavailable)
      .fix("NCCL_DEBUG=WARN in the environment says more; look for the error of the other ranks")
      .raise();
}

int nccl_number(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

}  // namespace

// Never unloaded: its threads may outlive whoever uses it.
const NcclFunctions& nccl() {
  static const NcclFunctions* const functions = new NcclFunctions(loaded_nccl());
  return *functions;
}

std::string new_nccl_id() {
  NcclFunctions::UniqueId id = {};
  const NcclFunctions::Result result = nccl().get_unique_id(&id);
  if (result != NcclFunctions::kSuccess) refuse_nccl(nccl(), result, "ncclGetUniqueId", {});
  return {id.bytes, sizeof id.bytes};
}

NcclCommunicator::NcclCommunicator(const Device& device, const std::string& id, int own,
                                   std::vector<int> ranks, const KeepWaiting& keep_waiting)
    : nccl_(nccl()), device_(device), ranks_(std::move(ranks)) {
  constexpr const char* kCall = "ncclCommInitRankConfig";
  NcclFunctions::UniqueId unique = {};
  std::memcpy(unique.bytes, id.data(), std::min(id.size(), sizeof unique.bytes));
  device.make_current();
  NcclFunctions::Config config;
  const auto size = static_cast<int>(ranks_.size());
  try {
    check(nccl_.init_rank(&communicator_, size, unique, nccl_number(ranks_, own), &config), kCall,
          {});
    wait_until_done(keep_waiting, kCall, {});
  } catch (const Error&) {
    abort();
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  if (communicator_ == nullptr) return;
  device_.make_current();
  nccl_.destroy(communicator_);
}

void NcclCommunicator::queue(std::span<const NcclTransfer> transfers, const Stream& stream,
                             const KeepWaiting& keep_waiting, std::string_view about) const {
  device_.make_current();
  check(nccl_.group_start(), "ncclGroupStart", about);
  try {
    for (const NcclTransfer& transfer : transfers) queue(transfer, stream, about);
  } catch (const Error&) {
    nccl_.group_end();  // a group is the thread's, and others may be its next
    throw;
  }
  check(nccl_.group_end(), "ncclGroupEnd", about);
  wait_until_done(keep_waiting, "ncclGroupEnd", about);
}

void NcclCommunicator::queue(const NcclTransfer& transfer, const Stream& stream,
                             std::string_view about) const {
  const int peer = nccl_number(ranks_, transfer.rank);
  if (transfer.kind == NcclTransfer::Kind::send) {
    check(nccl_.send(transfer.at, transfer.bytes, NcclFunctions::kBytes, peer, communicator_,
                     stream.handle()),
          fmt::format("ncclSend to rank {}", transfer.rank), about);
  } else {
    check(nccl_.receive(transfer.at, transfer.bytes, NcclFunctions::kBytes, peer, communicator_,
                        stream.handle()),
          fmt::format("ncclRecv from rank {}", transfer.rank), about);
  }
}

void NcclCommunicator::require_sound(std::string_view about) const {
  if (communicator_ == nullptr) return;
  int state = NcclFunctions::kSuccess;
  check(nccl_.get_async_error(communicator_, &state), "ncclCommGetAsyncError", about);
  check(state, "a transfer by NCCL", about);
}

void NcclCommunicator::abort() noexcept {
  if (communicator_ == nullptr) return;
  nccl_.abort(communicator_);
  communicator_ = nullptr;
}

void NcclCommunicator::wait_until_done(const KeepWaiting& keep_waiting, const char* call,
                                       std::string_view about) const {
  constexpr int kYields = 1000;  // a call is mostly done by then
  for (int i = 0;; ++i) {
    int state = NcclFunctions::kSuccess;
    check(nccl_.get_async_error(communicator_, &state), "ncclCommGetAsyncError", about);
    if (state == NcclFunctions::kSuccess) return;
    check(state, call, about);
    keep_waiting();
    if (i < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void NcclCommunicator::check(int result, std::string_view call, std::string_view about) const {
  if (result == NcclFunctions::kSuccess || result == NcclFunctions::kInProgress) return;
  refuse_nccl(nccl_, result, call, about);
}

}  // namespace tilewright::runtime

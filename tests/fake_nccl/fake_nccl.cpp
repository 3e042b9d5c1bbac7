// NCCL without a GPU, beside the fake driver: what a rank sends goes through a socket of Linux's
// abstract namespace to the process of the other one, when the stream's turn comes. As in NCCL, a
// call returns before what it asks for has come; who waits for a rank that has died waits until
// the communicator is aborted; and two ranks of one GPU are refused.
//
// FAKE_NCCL_VERSION: what ncclGetVersion says. FAKE_NCCL_FAILS: the call that fails, in the rank
// FAKE_NCCL_FAILS_IN of its communicator. FAKE_NCCL_BREAKS: the same of what was queued.

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <dlfcn.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace fake_nccl {

constexpr int kSuccess = 0, kSystemError = 2, kInvalidUsage = 5, kInProgress = 7;

// Whatever others wait for ends with the abort.
class Connection {
 public:
  explicit Connection(int socket, const std::atomic<bool>& is_aborted)
      : socket_(socket), is_aborted_(is_aborted) {}
  ~Connection() { close(socket_); }

  void send(const char* bytes, std::size_t count) {
    pass(count, POLLOUT, [&](std::size_t done) {
      return ::send(socket_, bytes + done, count - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }
  void receive(char* bytes, std::size_t count) {
    pass(count, POLLIN, [&](std::size_t done) {
      return ::recv(socket_, bytes + done, count - done, MSG_DONTWAIT);
    });
  }

 private:
  template <typename Pass>
  void pass(std::size_t count, short wanted, const Pass& pass_some) {
    for (std::size_t done = 0; done < count && !is_aborted_;) {
      const ssize_t now = pass_some(done);
      if (now > 0) {
        done += static_cast<std::size_t>(now);
        continue;
      }
      pollfd look{socket_, wanted, 0};
      if (now == 0 || (now < 0 && errno != EAGAIN)) {
        usleep(1000);  // the other one has died
      } else {
        poll(&look, 1, 10);
      }
    }
  }

  const int socket_;
  const std::atomic<bool>& is_aborted_;
};

sockaddr_un address_of(const std::string& name, socklen_t& length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace fake_nccl

using namespace fake_nccl;

struct ncclComm {
  std::string name;
  int rank = 0, size = 0, device = 0;
  std::map<int, std::unique_ptr<Connection>> peers;
  std::atomic<bool> is_aborted = false;
  std::atomic<int> state = kInProgress, queued = 0;
  std::thread meeting;

  bool fails(const char* variable_name, const char* call) const {
    return variable(variable_name) == call &&
           std::atoi(variable("FAKE_NCCL_FAILS_IN").c_str()) == rank;
  }
  std::string endpoint(int of) const { return name + "-" + std::to_string(of); }
  // Those of higher ranks call.
  void meet() {
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = 0;
    sockaddr_un own = address_of(endpoint(rank), length);
    bind(listener, reinterpret_cast<sockaddr*>(&own), length);
    listen(listener, size);
    bool is_twice = false;
    const auto add = [&](int with, int peer) {
      const int hello[2] = {rank, device};
      int other[2] = {};
      auto made = std::make_unique<Connection>(with, is_aborted);
      made->send(reinterpret_cast<const char*>(hello), sizeof hello);
      made->receive(reinterpret_cast<char*>(other), sizeof other);
      is_twice = is_twice || (!is_aborted && other[1] == device);
      peers[peer < 0 ? other[0] : peer] = std::move(made);
    };
    for (int peer = 0; peer < rank; ++peer) {
      const int with = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address = address_of(endpoint(peer), length);
      while (connect(with, reinterpret_cast<sockaddr*>(&address), length) != 0 && !is_aborted) {
        usleep(1000);
      }
      add(with, peer);
    }
    while (static_cast<int>(peers.size()) < size - 1 && !is_aborted) {
      pollfd look{listener, POLLIN, 0};
      if (poll(&look, 1, 10) > 0) add(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), -1);
    }
    close(listener);
    state = is_twice ? kInvalidUsage : kSuccess;
  }
};

namespace {

struct Transfer {
  bool sends;
  char* at;
  std::size_t bytes;
  int peer;
};
// What one stream does at once.
struct Queued {
  ncclComm* communicator;
  std::vector<Transfer> transfers;
  void run() {
    std::thread sending([this] { pass(true); });
    pass(false);
    sending.join();
    --communicator->queued;
  }
  void pass(bool sends) {
    for (const Transfer& each : transfers) {
      if (each.sends != sends) continue;
      Connection& with = *communicator->peers.at(each.peer);
      sends ? with.send(each.at, each.bytes) : with.receive(each.at, each.bytes);
    }
  }
};

thread_local int depth = 0;
thread_local std::map<void*, Queued> opened;  // by stream

using Submit = void(void* stream, void (*work)(void*), void* data);
Submit* driver_function(const char* name) {
  static void* const driver = dlopen(std::getenv("TILEWRIGHT_CUDA_DRIVER"), RTLD_NOW);
  return reinterpret_cast<Submit*>(dlsym(driver, name));
}

int add(ncclComm* communicator, void* stream, const Transfer& transfer, const char* call) {
  if (communicator->fails("FAKE_NCCL_FAILS", call)) return kSystemError;
  if (communicator->fails("FAKE_NCCL_BREAKS", call)) communicator->state = kSystemError;
  Queued& queued = opened[stream];
  queued.communicator = communicator;
  queued.transfers.push_back(transfer);
  return kInProgress;
}

}  // namespace

extern "C" {

struct ncclUniqueId {
  char bytes[128];
};
struct ncclConfig {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

int ncclGetVersion(int* version) {
  const std::string said = variable("FAKE_NCCL_VERSION");
  *version = said.empty() ? 22809 : std::atoi(said.c_str());
  return kSuccess;
}
int ncclGetUniqueId(ncclUniqueId* id) {
  const std::string name = "fake-nccl-" + std::to_string(std::random_device()());
  std::strncpy(id->bytes, name.c_str(), sizeof id->bytes);
  return kSuccess;
}
int ncclCommInitRankConfig(ncclComm** communicator, int size, ncclUniqueId id, int rank,
                           const ncclConfig* config) {
  if (config->magic != 0xcafebeef || config->blocking != 0) return kInvalidUsage;
  auto* const made = new ncclComm;
  made->name = id.bytes;
  made->rank = rank;
  made->size = size;
  using Current = int(int*);
  int device = 0;
  reinterpret_cast<Current*>(driver_function("cuCtxGetDevice"))(&device);
  made->device = device;
  *communicator = made;
  if (made->fails("FAKE_NCCL_FAILS", "ncclCommInitRankConfig")) return kSystemError;
  made->meeting = std::thread([made] { made->meet(); });
  return kInProgress;
}
int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
int ncclGroupEnd() {
  if (--depth > 0) return kSuccess;
  for (auto& [stream, queued] : opened) {
    ++queued.communicator->queued;
    driver_function("fake_cuda_submit")(
        stream,
        [](void* data) {
          const std::unique_ptr<Queued> own(static_cast<Queued*>(data));
          own->run();
        },
        new Queued(std::move(queued)));
  }
  opened.clear();
  return kInProgress;
}
int ncclSend(const void* from, std::size_t bytes, int, int peer, ncclComm* communicator,
             void* stream) {
  return add(communicator, stream, {true, static_cast<char*>(const_cast<void*>(from)), bytes, peer},
             "ncclSend");
}
int ncclRecv(void* to, std::size_t bytes, int, int peer, ncclComm* communicator, void* stream) {
  return add(communicator, stream, {false, static_cast<char*>(to), bytes, peer}, "ncclRecv");
}
int ncclCommGetAsyncError(ncclComm* communicator, int* state) {
  *state = communicator->state;
  return kSuccess;
}
int ncclCommDestroy(ncclComm* communicator) {
  if (communicator->meeting.joinable()) communicator->meeting.join();
  while (communicator->queued > 0) usleep(100);
  delete communicator;
  return kSuccess;
}
int ncclCommAbort(ncclComm* communicator) {
  communicator->is_aborted = true;
  return ncclCommDestroy(communicator);
}
const char* ncclGetErrorString(int result) {
  return result == kSystemError ? "a fake failure of the system" : "a fake wrong use";
}

}  // extern "C"

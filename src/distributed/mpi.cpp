#include "distributed/mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/packing.h"
#include "runtime/dynamic_library.h"
#include "support/diagnostic.h"

namespace tilewright::distributed {
namespace {

using Ticket = Rendezvous::Way::Ticket;

// Open MPI's handles are addresses of objects of its library, those of MPICH and its kin are ints:
// both fit what a register passes.
using Handle = std::uintptr_t;
constexpr Handle kMpichWorld = 0x44000000, kMpichByte = 0x4c00010d;
constexpr int kSerialized = 2;  // MPI_THREAD_SERIALIZED, in both

runtime::LibraryRequest mpi_request() {
  runtime::LibraryRequest request;
  if (const char* chosen = std::getenv("TILEWRIGHT_MPI"); chosen != nullptr && *chosen != '\0') {
    request.what = "the MPI library named by TILEWRIGHT_MPI";
    request.candidates = {chosen};
    request.how_to_get_it = "unset TILEWRIGHT_MPI, or set it to the path of libmpi.so";
    return request;
  }
  request.what = "an MPI library (Open MPI, MPICH)";
  request.candidates = {"libmpi.so.40", "libmpi.so.12", "libmpi.so"};
  request.how_to_get_it =
      "install Open MPI or MPICH, or set TILEWRIGHT_MPI to the path of libmpi.so; or use another "
      "rendezvous, such as a file";
  return request;
}

// One that is loaded already is taken before others that could be.
runtime::DynamicLibrary open_mpi_library() {
  const runtime::LibraryRequest request = mpi_request();
  for (const std::string& candidate : request.candidates) {
    if (void* const loaded = dlopen(candidate.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(loaded);
      return runtime::DynamicLibrary::try_open(candidate);
    }
  }
  return runtime::DynamicLibrary::open_first(request);
}

class Mpi {
 public:
  // Never destroyed: it is finalised when the process exits.
  static const Mpi& get() {
    static const Mpi* const mpi = new Mpi;
    return *mpi;
  }

  const std::string& path() const { return library_.path(); }
  int rank() const { return number("MPI_Comm_rank", rank_); }
  int size() const { return number("MPI_Comm_size", size_); }
  void broadcast(char* bytes, int count) const {
    check("MPI_Bcast", broadcast_(bytes, count, byte_, /*root=*/0, world_));
  }

 private:
  using NumberFunction = int(Handle, int*);

  Mpi() : library_(open_mpi_library()) {
    bind(rank_, "MPI_Comm_rank");
    bind(size_, "MPI_Comm_size");
    bind(broadcast_, "MPI_Bcast");
    bind(finalize_, "MPI_Finalize");
    if (void* const world = library_.find("ompi_mpi_comm_world")) {
      world_ = reinterpret_cast<Handle>(world);
      byte_ = reinterpret_cast<Handle>(library_.find("ompi_mpi_byte"));
    }
    start();
  }

  template <typename Function>
  void bind(Function*& function, const char* symbol) const {
    if (library_.bind(function, symbol)) return;
    refuse(fmt::format("{} has no {}", library_.path(), symbol));
  }

  void start() const {
    int (*initialized)(int*) = nullptr, (*finalized)(int*) = nullptr;
    int (*initialize)(int*, char***, int, int*) = nullptr;
    bind(initialized, "MPI_Initialized");
    bind(finalized, "MPI_Finalized");
    bind(initialize, "MPI_Init_thread");
    int is_started = 0, has_ended = 0, provided = 0;
    check("MPI_Initialized", initialized(&is_started));
    check("MPI_Finalized", finalized(&has_ended));
    if (has_ended != 0) refuse("MPI was finalised in this process, and cannot be used again");
    if (is_started != 0) return;
    check("MPI_Init_thread", initialize(nullptr, nullptr, kSerialized, &provided));
    // Whoever initialises it finalises it: else mpirun takes the process for one that failed.
    std::atexit([] { get().finish(); });
  }

  void finish() const {
    int (*finalized)(int*) = nullptr;
    int has_ended = 0;
    library_.bind(finalized, "MPI_Finalized");
    if (finalized(&has_ended) == 0 && has_ended == 0) finalize_();
  }

  int number(const char* call, NumberFunction* function) const {
    int value = 0;
    check(call, function(world_, &value));
    return value;
  }

  // By default MPI ends the process itself.
  void check(const char* call, int code) const {
    if (code != 0) refuse(fmt::format("{} of {} returns {}", call, library_.path(), code));
  }

  [[noreturn]] static void refuse(const std::string& what) {
    Diagnostic({}, what, ErrorKind::unavailable)
        .fix("another MPI library (TILEWRIGHT_MPI), or another rendezvous, such as a file")
        .raise();
  }

  const runtime::DynamicLibrary library_;
  Handle world_ = kMpichWorld, byte_ = kMpichByte;
  NumberFunction *rank_ = nullptr, *size_ = nullptr;
  int (*broadcast_)(void*, int, Handle, int, Handle) = nullptr;
  int (*finalize_)() = nullptr;
};

// Started by another MPI's mpirun, each process takes itself for the only one.
void require_own_launcher(const Mpi& mpi) {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const text = std::getenv(name);
    const std::optional<int> started = text == nullptr ? std::nullopt : parse_int(text);
    if (!started || *started == mpi.size()) continue;
    Diagnostic({}, fmt::format("{} says that this process is rank {} of {}, and {} is {}",
                               mpi.path(), mpi.rank(), mpi.size(), name, *started))
        .fix("the MPI library of the mpirun that starts the processes (TILEWRIGHT_MPI)")
        .raise();
  }
}

class MpiWay final : public Rendezvous::Way {
 public:
  MpiWay() : mpi_(Mpi::get()) { require_own_launcher(mpi_); }

  std::string text() const override { return "MPI"; }
  std::optional<Place> place() override { return Place{mpi_.rank(), mpi_.size()}; }
  void publish(const Ticket& ticket) override {
    Bytes bytes = {};
    const std::string text = text_of(ticket);
    std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size() - 1));
    mpi_.broadcast(bytes.data(), static_cast<int>(bytes.size()));
  }
  // Once: the broadcast is one.
  std::optional<Ticket> find(Clock::time_point) override {
    if (found_) return found_;
    Bytes bytes = {};
    mpi_.broadcast(bytes.data(), static_cast<int>(bytes.size()));
    found_ = parse_ticket(bytes.data());
    return found_;
  }

 private:
  using Bytes = std::array<char, 512>;
  const Mpi& mpi_;
  std::optional<Ticket> found_;
};

}  // namespace

std::shared_ptr<Rendezvous::Way> mpi_way() { return std::make_shared<MpiWay>(); }

}  // namespace tilewright::distributed

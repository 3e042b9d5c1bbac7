#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "distributed/mpi.h"
#include "distributed/packing.h"
#include "distributed/way.h"
#include "support/diagnostic.h"
#include "support/file.h"
#include "support/hash.h"

namespace tilewright {
namespace {

using distributed::Clock;
using distributed::Endpoint;
using Ticket = Rendezvous::Way::Ticket;

class FileWay final : public Rendezvous::Way {
 public:
  explicit FileWay(std::string path) : path_(std::move(path)) {}

  std::string text() const override { return "the file " + path_; }

  void publish(const Ticket& ticket) override {
    while (!create(ticket)) remove_old();
    is_published_ = true;
  }

  std::optional<Ticket> find(Clock::time_point) override {
    struct stat status {
    }, later{};
    if (::stat(path_.c_str(), &status) != 0) return std::nullopt;
    if (status.st_uid != geteuid()) {
      Diagnostic({}, fmt::format("{} belongs to user {}, and this process to {}", text(),
                                 status.st_uid, geteuid()))
          .fix("a path where other users do not write")
          .raise();
    }
    const std::optional<std::string> text = try_read_text(path_);
    if (!text && (::stat(path_.c_str(), &later) != 0 || later.st_ino != status.st_ino)) {
      return std::nullopt;  // removed meanwhile
    }
    return ticket_of(text);
  }

  void withdraw() noexcept override {
    if (is_published_) ::unlink(path_.c_str());
    is_published_ = false;
  }

 private:
  // False where there is a file already. It appears whole.
  bool create(const Ticket& ticket) const {
    const std::string bytes = distributed::text_of(ticket);
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    TemporaryFile file(folder.empty() ? "." : folder.string(), 0600);
    file.write({std::as_bytes(std::span(bytes))});
    int error = file.error();
    if (error == 0 && ::link(file.path().c_str(), path_.c_str()) != 0) error = errno;
    if (error == EEXIST) return false;
    if (error != 0) refuse(std::strerror(error), "a path in a folder where this user may write");
    return true;
  }

  // Of a job that has ended. The lock keeps two ranks 0 from removing each other's new file.
  void remove_old() const {
    const FileDescriptor old(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!old && errno != ENOENT) refuse_other();
    if (!old || ::flock(old.get(), LOCK_EX) != 0) return;
    struct stat locked {
    }, current{};
    if (::fstat(old.get(), &locked) != 0 || ::stat(path_.c_str(), &current) != 0 ||
        locked.st_ino != current.st_ino) {
      return;
    }
    const Ticket ticket = ticket_of(try_read_text(path_));
    std::string why;
    if (distributed::connect_to(ticket.endpoint, Clock::now() + std::chrono::seconds(1), why)) {
      refuse("rank 0 of another job waits there, or this job has two ranks 0",
             "another path for each job, and one rank 0");
    }
    ::unlink(path_.c_str());
  }

  // Rank 0 makes its file whole: what is no ticket never becomes one.
  Ticket ticket_of(const std::optional<std::string>& text) const {
    if (std::optional<Ticket> ticket = distributed::parse_ticket(text.value_or(""))) return *ticket;
    refuse_other();
  }

  [[noreturn]] void refuse_other() const {
    refuse("there is a file already, and it is not one of a rendezvous", "a path where no file is");
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& fix) const {
    Diagnostic({}, fmt::format("{}: {}", text(), what)).fix(fix).raise();
  }

  const std::string path_;
  bool is_published_ = false;
};

// Where rank 0 is told to listen.
class FixedWay final : public Rendezvous::Way {
 public:
  explicit FixedWay(Ticket ticket, std::optional<Place> place = std::nullopt)
      : ticket_(std::move(ticket)), place_(place) {}

  std::string text() const override { return ticket_.endpoint.text(); }
  std::optional<Place> place() override { return place_; }
  std::optional<Ticket> fixed() const override { return ticket_; }
  std::optional<Ticket> find(Clock::time_point) override { return ticket_; }

 private:
  const Ticket ticket_;
  const std::optional<Place> place_;
};

class StoreWay final : public Rendezvous::Way {
 public:
  StoreWay(KeyValueStore store, std::string key) : store_(std::move(store)), key_(std::move(key)) {}

  std::string text() const override { return "the store's key " + key_; }
  void publish(const Ticket& ticket) override { store_.set(key_, distributed::text_of(ticket)); }
  std::optional<Ticket> find(Clock::time_point deadline) override {
    store_.wait(key_, std::chrono::milliseconds(distributed::milliseconds_until(deadline)));
    return distributed::parse_ticket(store_.get(key_));
  }

 private:
  const KeyValueStore store_;
  const std::string key_;
};

[[noreturn]] void refuse(const std::string& what, const std::string& fix) {
  Diagnostic({}, what).fix(fix).raise();
}

std::string variable_or(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::shared_ptr<Rendezvous::Way> way_of_one_machine(const RankEnvironment& environment) {
  if (environment.job.empty()) {
    refuse(fmt::format("the environment of {} does not name the job", environment.launcher),
           "Rendezvous::mpi(), or a file or address of this job's own");
  }
  // A name that other jobs of this user, and other users, do not have.
  const std::string name = fmt::format("tilewright-{}-{:016x}", geteuid(), hash64(environment.job));
  return std::make_shared<FixedWay>(Ticket{Endpoint{true, name, 0}, environment.job},
                                    Rendezvous::Way::Place{environment.rank, environment.size});
}

std::shared_ptr<Rendezvous::Way> way_of_several(const RankEnvironment& environment) {
  if (environment.address.empty()) {
    refuse(fmt::format("{} has started {} of {} ranks on this machine, and does not say where rank "
                       "0 is",
                       environment.launcher, environment.local_size, environment.size),
           "Rendezvous::mpi(), or Rendezvous::socket with an address of rank 0's machine");
  }
  const std::string port = variable_or("TILEWRIGHT_PORT", std::to_string(environment.port + 1));
  const std::string token = variable_or("TILEWRIGHT_TOKEN", environment.job);
  const std::optional<int> number = distributed::parse_int(port);
  if (!number || *number < 1 || *number > 65535) {
    refuse(fmt::format("TILEWRIGHT_PORT is \"{}\"", port), "a port from 1 to 65535");
  }
  return std::make_shared<FixedWay>(Ticket{Endpoint{false, environment.address, *number}, token},
                                    Rendezvous::Way::Place{environment.rank, environment.size});
}

}  // namespace

Rendezvous Rendezvous::file(std::string path) {
  if (path.empty()) refuse("a rendezvous file without a path", "the path of a file to be made");
  return Rendezvous(std::make_shared<FileWay>(std::move(path)));
}

Rendezvous Rendezvous::socket(std::string address, int port, std::string token) {
  if (port < 1 || port > 65535) {
    refuse(fmt::format("port {} of a rendezvous", port), "a port from 1 to 65535");
  }
  if (address.empty()) refuse("a rendezvous without an address", "an address of rank 0's machine");
  if (token.empty()) {
    refuse("a rendezvous by socket without a token",
           "a word that the ranks of this job alone know");
  }
  return Rendezvous(std::make_shared<FixedWay>(
      Ticket{Endpoint{false, std::move(address), port}, std::move(token)}));
}

Rendezvous Rendezvous::store(KeyValueStore store, std::string key) {
  if (!store.set || !store.get || !store.wait) {
    refuse("a store without set, get or wait", "all three functions");
  }
  return Rendezvous(std::make_shared<StoreWay>(std::move(store), std::move(key)));
}

Rendezvous Rendezvous::mpi() { return Rendezvous(distributed::mpi_way()); }

Rendezvous Rendezvous::environment() {
  const std::optional<RankEnvironment> environment = rank_environment();
  if (!environment) {
    refuse(
        "no launcher has said which rank this process is (RANK, OMPI_COMM_WORLD_RANK and "
        "PMI_RANK are not set)",
        "torchrun or mpirun; or another rendezvous, with rank and size");
  }
  return Rendezvous(environment->local_size == environment->size ? way_of_one_machine(*environment)
                                                                 : way_of_several(*environment));
}

}  // namespace tilewright

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "distributed/packing.h"
#include "support/diagnostic.h"
#include "tilewright/distributed.h"

namespace tilewright {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

// The variables by which a launcher says who is who; null where it has none.
struct Launcher {
  const char *name, *rank, *size, *local_rank, *local_size;
};
constexpr Launcher kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Launcher kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Launcher kPmi = {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

[[noreturn]] void refuse(const Launcher& launcher, const std::string& what) {
  Diagnostic({}, fmt::format("the environment of {}: {}", launcher.name, what))
      .fix("start the process by its launcher, or pass rank and size")
      .raise();
}

int number_of(const Launcher& launcher, const char* name, const std::string& text) {
  const std::optional<int> value = distributed::parse_int(text);
  if (!value) refuse(launcher, fmt::format("{} is \"{}\", which is no number", name, text));
  return *value;
}

int required(const Launcher& launcher, const char* name, const char* beside) {
  const std::optional<std::string> text = variable(name);
  if (!text) refuse(launcher, fmt::format("{} is set, and {} is not", beside, name));
  return number_of(launcher, name, *text);
}

int optional_number(const Launcher& launcher, const char* name, int otherwise) {
  const std::optional<std::string> text = variable(name);
  return text ? number_of(launcher, name, *text) : otherwise;
}

void require_below(const Launcher& launcher, const char* name, int value, const char* of,
                   int count) {
  if (0 <= value && value < count) return;
  refuse(launcher, fmt::format("{} is {}, and {} is {}", name, value, of, count));
}

// Without the numbers of this machine all ranks are taken to be on it.
RankEnvironment read_numbers(const Launcher& launcher) {
  RankEnvironment read;
  read.launcher = launcher.name;
  read.rank = required(launcher, launcher.rank, launcher.size);
  read.size = required(launcher, launcher.size, launcher.rank);
  require_below(launcher, launcher.rank, read.rank, launcher.size, read.size);
  read.local_rank = optional_number(launcher, launcher.local_rank, read.rank);
  read.local_size = optional_number(launcher, launcher.local_size, read.size);
  require_below(launcher, launcher.local_rank, read.local_rank, launcher.local_size,
                read.local_size);
  return read;
}

bool is_set(const Launcher& launcher) { return variable(launcher.rank) || variable(launcher.size); }

RankEnvironment of_torchrun() {
  RankEnvironment read = read_numbers(kTorchrun);
  read.address = variable("MASTER_ADDR").value_or("");
  read.port = optional_number(kTorchrun, "MASTER_PORT", 0);
  // A job that torchrun starts again must not meet what is left of its ranks before.
  read.job = fmt::format("{}:{}:{}:{}", read.address, read.port,
                         variable("TORCHELASTIC_RUN_ID").value_or(""),
                         variable("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  return read;
}

RankEnvironment of_open_mpi() {
  RankEnvironment read = read_numbers(kOpenMpi);
  const auto job = variable("PMIX_NAMESPACE");
  read.job = job ? *job : variable("OMPI_MCA_ess_base_jobid").value_or("");
  return read;
}

RankEnvironment of_pmi() {
  RankEnvironment read = read_numbers(kPmi);
  read.job = variable("PMI_JOBID").value_or("");
  return read;
}

}  // namespace

std::optional<RankEnvironment> rank_environment() {
  if (is_set(kTorchrun)) return of_torchrun();
  if (is_set(kOpenMpi)) return of_open_mpi();
  if (is_set(kPmi)) return of_pmi();
  return std::nullopt;
}

}  // namespace tilewright

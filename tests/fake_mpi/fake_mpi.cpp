// An MPI of processes that a test has started: $FAKE_MPI_RANK of $FAKE_MPI_SIZE, whose broadcasts
// are files in $FAKE_MPI_FOLDER. Compiled once with the handles of Open MPI and once with MPICH's;
// a wrong one is an error.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

bool is_initialized = false;
int broadcasts = 0;

constexpr int kWrongHandle = 5;

}  // namespace

extern "C" {

#ifdef FAKE_OPEN_MPI
using Handle = const void*;
char ompi_mpi_comm_world = 0, ompi_mpi_byte = 0;
static const Handle kWorld = &ompi_mpi_comm_world, kByte = &ompi_mpi_byte;
#else
using Handle = int;
constexpr Handle kWorld = 0x44000000, kByte = 0x4c00010d;
#endif

int MPI_Initialized(int* flag) {
  *flag = is_initialized ? 1 : 0;
  return 0;
}
int MPI_Finalized(int* flag) {
  *flag = 0;
  return 0;
}
int MPI_Init_thread(int*, char***, int, int* provided) {
  is_initialized = true;
  *provided = 2;
  return 0;
}
int MPI_Finalize() { return 0; }
int MPI_Comm_rank(Handle world, int* rank) {
  *rank = std::atoi(std::getenv("FAKE_MPI_RANK"));
  return world == kWorld ? 0 : kWrongHandle;
}
int MPI_Comm_size(Handle world, int* size) {
  *size = std::atoi(std::getenv("FAKE_MPI_SIZE"));
  return world == kWorld ? 0 : kWrongHandle;
}
int MPI_Bcast(void* bytes, int count, Handle type, int root, Handle world) {
  if (world != kWorld || type != kByte) return kWrongHandle;
  int rank = 0;
  MPI_Comm_rank(world, &rank);
  const std::string path =
      std::string(std::getenv("FAKE_MPI_FOLDER")) + "/" + std::to_string(broadcasts++);
  const auto size = static_cast<std::size_t>(count);
  if (rank == root) {
    std::FILE* const file = std::fopen((path + ".new").c_str(), "w");
    std::fwrite(bytes, 1, size, file);
    std::fclose(file);
    return std::rename((path + ".new").c_str(), path.c_str());
  }
  std::FILE* file = nullptr;
  while ((file = std::fopen(path.c_str(), "r")) == nullptr) usleep(1000);
  const bool is_whole = std::fread(bytes, 1, size, file) == size;
  std::fclose(file);
  return is_whole ? 0 : 1;
}

}  // extern "C"

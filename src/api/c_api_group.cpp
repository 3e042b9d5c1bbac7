#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/c_api_objects.h"
#include "runtime/device.h"

struct tilewright_symmetric {
  tilewright::SymmetricArena arena;
  std::string name;
  int device;  // -1: memory of the host
};

namespace {

using tilewright::Group;
using tilewright::GroupOptions;
using tilewright::KeyValueStore;
using tilewright::Rendezvous;
using tilewright::SymmetricArena;
using tilewright::c_api::fail;
using tilewright::c_api::guarded;
using tilewright::c_api::required;

using LiveGroups = tilewright::c_api::Live<tilewright_group>;
using LiveSymmetric = tilewright::c_api::Live<tilewright_symmetric>;

// `seconds` 0: the standard.
std::chrono::milliseconds time_of(double seconds, std::chrono::milliseconds standard,
                                  const char* what) {
  constexpr double kMost = 1e9;
  if (seconds == 0) return standard;
  if (!(seconds > 0 && seconds <= kMost)) {
    fail(fmt::format("a group's {} of {} s", what, seconds), "seconds above 0, at most 10^9");
  }
  return std::chrono::milliseconds(std::max<std::int64_t>(std::llround(seconds * 1e3), 1));
}

GroupOptions options_of(const tilewright_group_options* given) {
  GroupOptions options;
  if (given == nullptr) return options;
  options.rank = given->rank;
  options.size = given->size;
  if (given->address != nullptr) options.address = given->address;
  options.patience = time_of(given->patience, options.patience, "patience");
  options.silence = time_of(given->silence, options.silence, "silence");
  return options;
}

tilewright_status create(const tilewright_group_options* options, tilewright_group** group,
                         const std::function<Rendezvous()>& rendezvous) {
  if (group != nullptr) *group = nullptr;
  return guarded(nullptr, [&] {
    if (group == nullptr) fail("the place for the group is NULL", "pass its address");
    auto made = std::unique_ptr<tilewright_group>(
        new tilewright_group{Group(rendezvous(), options_of(options))});
    LiveGroups::all().add(made.get());
    *group = made.release();
  });
}

void check_store(int32_t failed, const char* what, const std::string& key) {
  if (failed == 0) return;
  tilewright::Diagnostic({}, fmt::format("the store fails to {} {}", what, key),
                         tilewright::ErrorKind::unavailable)
      .fix("look for the error of the function that was passed as the store's")
      .raise();
}

std::string value_of(const tilewright_store& store, const std::string& key) {
  std::string value(1024, '\0');
  int64_t size = 0;
  const auto get = [&] {
    const auto room = static_cast<int64_t>(value.size());
    check_store(store.get(store.context, key.c_str(), value.data(), room, &size), "get", key);
    return size <= room;
  };
  if (get()) return value.substr(0, static_cast<std::size_t>(std::max<int64_t>(size, 0)));
  value.resize(static_cast<std::size_t>(size));
  check_store(get() ? 0 : 1, "get all of", key);
  return value;
}

KeyValueStore store_of(const tilewright_store* store) {
  if (store == nullptr || !store->set || !store->get || !store->wait) {
    fail("the store is NULL, or lacks a function", "pass set, get and wait");
  }
  KeyValueStore functions;
  functions.set = [of = *store](const std::string& key, const std::string& value) {
    const auto size = static_cast<int64_t>(value.size());
    check_store(of.set(of.context, key.c_str(), value.data(), size), "set", key);
  };
  functions.get = [of = *store](const std::string& key) { return value_of(of, key); };
  functions.wait = [of = *store](const std::string& key, std::chrono::milliseconds patience) {
    const double seconds = std::chrono::duration<double>(patience).count();
    check_store(of.wait(of.context, key.c_str(), seconds), "wait for", key);
  };
  return functions;
}

SymmetricArena::Memory memory_of(const std::string& name) {
  if (name == "host") return SymmetricArena::Memory::host;
  if (name == "gpu") return SymmetricArena::Memory::gpu;
  fail(fmt::format("symmetric memory on '{}'", name), "host, or gpu");
}

std::size_t bytes_of(int64_t bytes, const char* what) {
  if (bytes < 0) fail(fmt::format("{}: {} bytes", what, bytes), "0 or more");
  return static_cast<std::size_t>(bytes);
}

std::byte* place_of(const tilewright_symmetric* symmetric, int32_t rank, int64_t offset,
                    const void* other, int64_t bytes) {
  LiveSymmetric::all().require(symmetric, "symmetric memory");
  std::byte* const first = symmetric->arena.at(rank);
  const auto size = static_cast<int64_t>(symmetric->arena.size());
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset) {
    fail(fmt::format("{} bytes at offset {} of {}, which has {} bytes", bytes, offset,
                     symmetric->name, size),
         "copy no more than there is");
  }
  if (other == nullptr && bytes > 0) {
    fail(fmt::format("{}: what is to be copied is NULL", symmetric->name), "pass its address");
  }
  return first + offset;
}

void copy(const tilewright_symmetric& symmetric, void* to, const void* from, int64_t bytes) {
  const auto count = static_cast<std::size_t>(bytes);
  if (count == 0) return;
  if (symmetric.device < 0) {
    std::memcpy(to, from, count);
    return;
  }
  const tilewright::runtime::Stream stream(tilewright::runtime::Device::get(symmetric.device));
  tilewright::runtime::copy_async(to, from, count, stream);
  stream.synchronize();
}

}  // namespace

tilewright_status tilewright_group_create_by_file(const char* path,
                                                  const tilewright_group_options* options,
                                                  tilewright_group** group) {
  return create(options, group,
                [&] { return Rendezvous::file(required(path, "the path of the file")); });
}

tilewright_status tilewright_group_create_by_socket(const char* address, int32_t port,
                                                    const char* token,
                                                    const tilewright_group_options* options,
                                                    tilewright_group** group) {
  return create(options, group, [&] {
    return Rendezvous::socket(required(address, "the address"), port, required(token, "the token"));
  });
}

tilewright_status tilewright_group_create_by_environment(const tilewright_group_options* options,
                                                         tilewright_group** group) {
  return create(options, group, [] { return Rendezvous::environment(); });
}

tilewright_status tilewright_group_create_by_mpi(const tilewright_group_options* options,
                                                 tilewright_group** group) {
  return create(options, group, [] { return Rendezvous::mpi(); });
}

tilewright_status tilewright_group_create_by_store(const tilewright_store* store, const char* key,
                                                   const tilewright_group_options* options,
                                                   tilewright_group** group) {
  return create(options, group,
                [&] { return Rendezvous::store(store_of(store), required(key, "the key")); });
}

void tilewright_group_destroy(tilewright_group* group) {
  if (LiveGroups::all().remove(group)) delete group;
}

int32_t tilewright_group_rank(const tilewright_group* group) {
  return LiveGroups::all().has(group) ? group->group.rank() : -1;
}

int32_t tilewright_group_size(const tilewright_group* group) {
  return LiveGroups::all().has(group) ? group->group.size() : -1;
}

tilewright_status tilewright_group_barrier(tilewright_group* group, const char* name) {
  return guarded(nullptr, [&] {
    LiveGroups::all().require(group, "group");
    group->group.barrier(required(name, "the barrier"));
  });
}

tilewright_status tilewright_group_all_gather(tilewright_group* group, const char* name,
                                              const void* own, int64_t size, const void** data,
                                              int64_t* sizes) {
  return guarded(nullptr, [&] {
    LiveGroups::all().require(group, "group");
    const std::size_t bytes = bytes_of(size, required(name, "the operation"));
    if ((own == nullptr && bytes > 0) || data == nullptr || sizes == nullptr) {
      fail(fmt::format("{}: what is given, or a place for what comes, is NULL", name),
           "pass the bytes, and a place for each rank's in data and in sizes");
    }
    const std::string given(static_cast<const char*>(own), bytes);
    group->gathered = group->group.all_gather(given, name);
    for (std::size_t rank = 0; rank < group->gathered.size(); ++rank) {
      data[rank] = group->gathered[rank].data();
      sizes[rank] = static_cast<int64_t>(group->gathered[rank].size());
    }
  });
}

int32_t tilewright_group_lost(const tilewright_group* group, int32_t* ranks, int32_t room) {
  if (!LiveGroups::all().has(group)) return -1;
  const std::vector<tilewright::LostRank> lost = group->group.lost();
  const auto count = static_cast<int32_t>(lost.size());
  for (int32_t i = 0; ranks != nullptr && i < std::min(count, room); ++i) {
    ranks[i] = lost[static_cast<std::size_t>(i)].rank;
  }
  return count;
}

tilewright_status tilewright_group_require_all(const tilewright_group* group,
                                               const char* waiting_for) {
  return guarded(nullptr, [&] {
    LiveGroups::all().require(group, "group");
    group->group.require_all(required(waiting_for, "what is waited for"));
  });
}

tilewright_status tilewright_symmetric_create(tilewright_group* group, int64_t bytes,
                                              const char* name, const char* memory, int32_t device,
                                              tilewright_symmetric** symmetric) {
  if (symmetric != nullptr) *symmetric = nullptr;
  return guarded(nullptr, [&] {
    if (symmetric == nullptr) fail("the place for the memory is NULL", "pass its address");
    LiveGroups::all().require(group, "group");
    const SymmetricArena::Memory where = memory_of(required(memory, "the kind of memory"));
    const std::string called = required(name, "the memory's name");
    const int own_device = where == SymmetricArena::Memory::gpu ? device : -1;
    auto made = std::unique_ptr<tilewright_symmetric>(new tilewright_symmetric{
        SymmetricArena(group->group, bytes_of(bytes, name), called, where, device), called,
        own_device});
    LiveSymmetric::all().add(made.get());
    *symmetric = made.release();
  });
}

void tilewright_symmetric_destroy(tilewright_symmetric* symmetric) {
  if (LiveSymmetric::all().remove(symmetric)) delete symmetric;
}

int64_t tilewright_symmetric_size(const tilewright_symmetric* symmetric) {
  return LiveSymmetric::all().has(symmetric) ? static_cast<int64_t>(symmetric->arena.size()) : 0;
}

void* tilewright_symmetric_address(const tilewright_symmetric* symmetric, int32_t rank) {
  if (!LiveSymmetric::all().has(symmetric)) return nullptr;
  if (rank < 0 || rank >= symmetric->arena.group().size()) return nullptr;
  return symmetric->arena.at(rank);
}

tilewright_status tilewright_symmetric_allocate(tilewright_symmetric* symmetric, int64_t bytes,
                                                const char* name, int64_t alignment,
                                                int64_t* offset) {
  return guarded(nullptr, [&] {
    LiveSymmetric::all().require(symmetric, "symmetric memory");
    const std::size_t wanted = bytes_of(bytes, required(name, "the part"));
    if (offset == nullptr) fail("the place for the offset is NULL", "pass its address");
    *offset = static_cast<int64_t>(
        symmetric->arena.allocate(wanted, name, bytes_of(alignment, "the alignment")));
  });
}

tilewright_status tilewright_symmetric_write(const tilewright_symmetric* symmetric, int32_t rank,
                                             int64_t offset, const void* from, int64_t bytes) {
  return guarded(nullptr, [&] {
    std::byte* const to = place_of(symmetric, rank, offset, from, bytes);
    copy(*symmetric, to, from, bytes);
  });
}

tilewright_status tilewright_symmetric_read(const tilewright_symmetric* symmetric, int32_t rank,
                                            int64_t offset, void* to, int64_t bytes) {
  return guarded(nullptr, [&] {
    const std::byte* const from = place_of(symmetric, rank, offset, to, bytes);
    copy(*symmetric, to, from, bytes);
  });
}

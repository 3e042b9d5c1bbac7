#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct CUfunc_st;
struct CUmod_st;

namespace tilewright::runtime {

class Device;
class Stream;

struct Extent3 {
  unsigned x = 1, y = 1, z = 1;
};

struct LaunchShape {
  Extent3 grid;
  Extent3 block;
  Extent3 cluster;
  unsigned shared_bytes = 0;  // dynamic
  bool cooperative = false;   // all blocks run at once, or the launch is refused
};

// The values of a kernel's parameters, built once and launched many times: only what changes
// between launches is set again.
class ParameterBuffer {
 public:
  // Returns the value's offset, for set(). It is no offset in the kernel's own parameters: what is
  // aligned to more than their bank starts elsewhere there.
  size_t add(const void* value, size_t bytes, size_t alignment);
  template <typename T>
  size_t add(const T& value) {
    return add(&value, sizeof(T), alignof(T));
  }
  template <typename T>
  void set(size_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }
  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  // One pointer to each value, in order, as a launch takes them; valid until the next add().
  std::vector<void*> pointers();

 private:
  std::vector<std::byte> bytes_;
  std::vector<size_t> offsets_;
};

// A cubin loaded on one device.
class LoadedModule {
 public:
  // `name` is what errors call it.
  LoadedModule(const Device& device, std::string_view cubin, std::string name);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

 private:
  friend class LoadedKernel;
  const Device& device_;
  CUmod_st* handle_ = nullptr;
  std::string name_;
  std::string cubin_;
};

struct KernelAttributes {
  int registers = 0;
  int static_shared_bytes = 0;
  int max_threads = 0;
};

// One kernel of a loaded module, ready to be launched from any thread.
class LoadedKernel {
 public:
  LoadedKernel(std::shared_ptr<const LoadedModule> module, std::string name);
  LoadedKernel(const Device& device, std::string_view cubin, std::string name);

  const std::string& name() const { return name_; }
  const KernelAttributes& attributes() const { return attributes_; }

  // Must precede every launch with more than 48 KiB of dynamic shared memory.
  void reserve_shared(size_t dynamic_bytes);
  // Must precede every launch with clusters of more than 8 blocks.
  void allow_large_clusters();

  // Allocates nothing. `arguments` has one pointer to each parameter's value, in order.
  void launch(const LaunchShape& shape, const Stream& stream, void* const* arguments) const;

 private:
  [[noreturn]] void refuse(const LaunchShape& shape, const Stream& stream) const;

  std::shared_ptr<const LoadedModule> module_;
  std::string name_;
  CUfunc_st* function_ = nullptr;
  KernelAttributes attributes_;
  size_t max_dynamic_shared_ = 0;
};

}  // namespace tilewright::runtime

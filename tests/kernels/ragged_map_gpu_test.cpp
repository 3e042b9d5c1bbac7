#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/gpu.h"
#include "kernels/moved_pages.h"
#include "library/accuracy.h"
#include "runtime/cuda_api.h"
#include "tilewright/compile.h"
#include "tilewright/library.h"
#include "tilewright/library_executable.h"

// For a box that lies wholly outside of its tensor TMA touches the address where the map begins. A
// ragged map begins before its tensor. Here nothing is mapped there.
namespace tilewright::kernels {
namespace {

using test::Moved;
using test::tensors_of;
using test::To;

// Memory of a GPU behind a range of addresses, as long as it is, that nothing is mapped to.
class MemoryBehindAHole {
 public:
  MemoryBehindAHole(const runtime::Device& device, std::size_t bytes) : driver_(device.driver()) {
    namespace memory = runtime::cuda::memory;
    memory::AllocationProperties properties = {};
    properties.type = memory::kPinned;
    properties.location = {memory::kDevice, device.ordinal()};
    std::size_t page = 0;
    call<int(std::size_t*, const memory::AllocationProperties*, int)>(
        "cuMemGetAllocationGranularity", &page, &properties, memory::kMinimumGranularity);
    bytes_ = (bytes / page + 1) * page;
    call<int(memory::Handle*, std::size_t, const memory::AllocationProperties*, std::uint64_t)>(
        "cuMemCreate", &handle_, bytes_, &properties, std::uint64_t{0});
    call<int(Pointer*, std::size_t, std::size_t, Pointer, std::uint64_t)>(
        "cuMemAddressReserve", &reserved_, 2 * bytes_, std::size_t{0}, Pointer{0},
        std::uint64_t{0});
    call<int(Pointer, std::size_t, std::size_t, memory::Handle, std::uint64_t)>(
        "cuMemMap", address(), bytes_, std::size_t{0}, handle_, std::uint64_t{0});
    const memory::AccessDescription access = {properties.location, memory::kReadWrite};
    call<int(Pointer, std::size_t, const memory::AccessDescription*, std::size_t)>(
        "cuMemSetAccess", address(), bytes_, &access, std::size_t{1});
  }
  ~MemoryBehindAHole() {
    call<int(Pointer, std::size_t)>("cuMemUnmap", address(), bytes_);
    call<int(Pointer, std::size_t)>("cuMemAddressFree", reserved_, 2 * bytes_);
    call<int(std::uint64_t)>("cuMemRelease", handle_);
  }
  MemoryBehindAHole(const MemoryBehindAHole&) = delete;

  void* data() const { return reinterpret_cast<void*>(address()); }
  void copy(void* to, const void* from, std::size_t bytes, const runtime::Stream& stream) const {
    const auto at = [](const void* p) { return reinterpret_cast<Pointer>(p); };
    EXPECT_EQ(driver_.cuMemcpyAsync(at(to), at(from), bytes, stream.handle()), 0);
    stream.synchronize();
  }

 private:
  using Pointer = runtime::cuda::DevicePointer;
  Pointer address() const { return reserved_ + bytes_; }
  template <typename Function, typename... Arguments>
  void call(const char* symbol, Arguments... arguments) const {
    EXPECT_EQ(runtime::driver_function<Function>(driver_, symbol)(arguments...), 0) << symbol;
  }

  const runtime::CudaDriver& driver_;
  std::size_t bytes_ = 0;
  std::uint64_t handle_ = 0;
  Pointer reserved_ = 0;
};

// Tensors each of which lies behind such a hole.
class TensorsBehindHoles {
 public:
  TensorsBehindHoles(const runtime::Device& device, const runtime::Stream& stream,
                     std::vector<HostTensor>& tensors)
      : stream_(stream), tensors_(tensors) {
    for (HostTensor& tensor : tensors) {
      memory_.push_back(std::make_unique<MemoryBehindAHole>(device, bytes_of(tensor)));
      memory_.back()->copy(memory_.back()->data(), ref(tensor).data, bytes_of(tensor), stream);
    }
  }
  std::vector<TensorRef> refs() const {
    std::vector<TensorRef> all;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      all.push_back(ref(tensors_[i]));
      all.back().data = memory_[i]->data();
    }
    return all;
  }
  void download() const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      memory_[i]->copy(ref(tensors_[i]).data, memory_[i]->data(), bytes_of(tensors_[i]), stream_);
    }
  }

 private:
  static std::size_t bytes_of(const HostTensor& tensor) {
    return static_cast<std::size_t>(tensor.elements() * size_of(tensor.dtype()));
  }

  const runtime::Stream& stream_;
  std::vector<HostTensor>& tensors_;
  std::vector<std::unique_ptr<MemoryBehindAHole>> memory_;
};

class RaggedMapGpuTest : public test::HopperTest {
 protected:
  void expect_moved(const Executable& executable, To to, const Moved& moved) {
    std::vector<HostTensor> tensors = tensors_of(moved);
    const std::vector<HostTensor> given = tensors;
    const TensorsBehindHoles on_device(device(), stream(), tensors);
    executable.run(on_device.refs());
    on_device.download();
    test::expect_moved(given, tensors, to, moved);
  }

  void expect_right(const char* name, const std::vector<std::string>& settings) {
    std::string text = name;
    for (const std::string& setting : settings) text += " " + setting;
    SCOPED_TRACE(text);
    const LibraryKernel& entry = find_kernel(name);
    library::Workload workload = library::make_workload(entry, settings, {}, 3);
    const library::Reference reference =
        library::reference_of(workload, library::Executed::by_hardware);
    workload.poison_outputs();
    const TensorsBehindHoles on_device(device(), stream(), workload.tensors);
    compile(entry, workload.options, "cuda").run(on_device.refs());
    on_device.download();
    const library::Comparison comparison = library::compare(workload, reference);
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
};

TEST_F(RaggedMapGpuTest, BoxesOutsideTouchNothingBeforeTheTensor) {
  std::vector<Moved> cases = test::moved_pages();
  for (const int limit : {0, 16}) {
    for (const int page : {-1, test::kPages, 12, 1 << 20}) {
      cases.push_back({{page, 0, limit}, {}});
      // A store that begins before its tensor is an illegal instruction to hardware.
      if (page >= 0) cases.push_back({{}, {page, 0, limit}});
    }
  }
  for (const To to : {To::stored, To::added}) {
    const Executable executable = compile(test::move_page(to), "cuda");
    for (const Moved& moved : cases) expect_moved(executable, to, moved);
  }
}

TEST_F(RaggedMapGpuTest, AttentionToPackedSequencesAndPages) {
  for (const char* causal : {"causal=false", "causal=true"}) {
    expect_right("attention_varlen_forward",
                 {"batch=300", "queries=200", "keys=900", "heads=2", "kv_heads=1", causal});
    expect_right("attention_varlen_backward",
                 {"batch=40", "queries=200", "keys=900", "heads=2", causal});
  }
  expect_right("attention_varlen_forward", {"batch=5", "queries=700", "keys=0", "heads=2"});
  for (const char* schedule : {"tile", "sm90", "sm90_split", "sm90_planned"}) {
    for (const char* page : {"page=16", "page=64"}) {
      expect_right("attention_paged", {"batch=7", "heads=8", "kv_heads=2", "dim=128", "max_pages=9",
                                       page, std::string("schedule=") + schedule});
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels

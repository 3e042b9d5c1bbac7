#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/gathered.h"
#include "compiler/device_tensors.h"
#include "examples/example.h"
#include "examples/incore_paged_kernels.h"
#include "library/accuracy.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "tilewright/library.h"
#include "tilewright/library_executable.h"
#include "tilewright/program.h"

#define main run_example
namespace paged_example {
#include "examples/incore_paged_attention.cpp"
}  // namespace paged_example
#undef main

// An operation that is a program, captured in a CUDA graph and run again on other numbers.
namespace tilewright {
namespace {

template <typename Function>
Function* graph_function(const char* symbol) {
  Function* function = nullptr;
  EXPECT_TRUE(runtime::cuda_driver().library.bind(function, symbol)) << symbol;
  return function;
}

TEST(CallerProgramGpuTest, AGraphRunsAgain) {
  try {
    runtime::Device::get(0);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const LibraryKernel& entry = find_kernel("attention_decode");
  const std::vector<std::string> settings{"batch=2", "kv_heads=2", "group=5", "keys=1000"};
  library::Workload work = library::make_workload(entry, settings, {}, 7);
  const LibraryExecutable executable = compile(entry, work.options, "cuda");
  const runtime::Device& device = runtime::Device::get(0);
  const runtime::Stream stream(device);
  const compiler::DeviceTensors tensors(work.tensors);
  tensors.synchronize();

  using Graph = void*;
  const auto begin = graph_function<int(CUstream_st*, int)>("cuStreamBeginCapture_v2");
  const auto end = graph_function<int(CUstream_st*, Graph*)>("cuStreamEndCapture");
  const auto instantiate =
      graph_function<int(Graph*, Graph, unsigned long long)>("cuGraphInstantiateWithFlags");
  const auto launch = graph_function<int(Graph, CUstream_st*)>("cuGraphLaunch");

  // The first run would allocate: an error that leaves the capture as it was.
  ASSERT_EQ(begin(stream.handle(), 0), 0);
  EXPECT_THROW(executable.run(tensors.refs(), stream.handle()), Error);
  Graph nothing = nullptr;
  ASSERT_EQ(end(stream.handle(), &nothing), 0);

  executable.prepare(tensors.refs(), stream.handle());
  ASSERT_EQ(begin(stream.handle(), 0), 0);
  executable.run(tensors.refs(), stream.handle());
  Graph graph = nullptr, ready = nullptr;
  ASSERT_EQ(end(stream.handle(), &graph), 0);
  ASSERT_EQ(instantiate(&ready, graph, 0), 0);

  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < work.tensors.size(); ++i) {
      if (entry.tensors[i].is_output) tensors.poison(i);
    }
    tensors.synchronize();
    ASSERT_EQ(launch(ready, stream.handle()), 0);
    stream.synchronize();
    tensors.download(work.tensors);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

// What it does depends on what the tensors hold, which the host reads in each run.
TEST(CallerProgramGpuTest, ReadsWhatItDoesInEachRun) {
  try {
    runtime::Device::get(0);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const test::Gathered of;
  const ProgramExecutable executable = compile(of.program, "cuda");
  const runtime::Stream stream(runtime::Device::get(0));
  for (const auto& lengths : {std::vector<double>{6, 0, 12}, {1, 4, 0}, {0, 0, 0}}) {
    test::GatheredTensors own;
    own.table = HostTensor::from_values(i32, {3, 3}, {1, 3, 0, 2, 0, 0, 4, 1, 0});
    own.lengths = HostTensor::from_values(i32, {3}, lengths);
    std::vector<HostTensor> all{own.x, own.table, own.lengths, own.y};
    const compiler::DeviceTensors tensors(all);
    tensors.synchronize();
    executable.run(tensors.refs(), {}, stream.handle());
    stream.synchronize();
    tensors.download(all);
    own.y = all[3];
    EXPECT_EQ(own.wrong(), 0);
  }
  // On memory of its own.
  test::GatheredTensors own;
  ProgramMemory memory(of.program, {{"batch", 3}, {"slots", 20}, {"most", 3}});
  memory.at(of.x) = own.x;
  memory.at(of.table) = own.table;
  memory.at(of.lengths) = own.lengths;
  memory.at(of.y) = own.y;
  ProgramExecutable loaded = compile(of.program, "cuda");
  loaded.load(memory);
  loaded.run(2);
  loaded.store(memory);
  own.y = memory.at(of.y);
  EXPECT_EQ(own.wrong(), 0);
}

// Attention over pages in four kernels, against float64.
TEST(CallerProgramGpuTest, PagedAttentionFollowsTheTable) {
  try {
    runtime::Device::get(0);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const ProgramExecutable executable =
      compile(paged_example::paged_attention(examples::paged::tile_kernels()), "cuda");
  const runtime::Stream stream(runtime::Device::get(0));
  const int page = examples::paged::kPage;
  for (const auto& lengths : {std::vector<int>{0, 1, page - 1, page, page + 1, 5 * page - 3},
                              {3 * page, 2, 4 * page, 0, 0, page + 7}}) {
    const paged_example::Data data = paged_example::make_data(20, lengths);
    std::vector<HostTensor> all{data.Q,       data.K,
                                data.V,       data.table,
                                data.lengths, HostTensor::poisoned(bf16, data.Q.shape())};
    const compiler::DeviceTensors tensors(all);
    tensors.synchronize();
    executable.run(tensors.refs(), {}, stream.handle());
    stream.synchronize();
    tensors.download(all);
    // Weights and results are rounded to bf16.
    EXPECT_LT(examples::relative_error(all[5], data.wanted), 5e-3);
  }
}

}  // namespace
}  // namespace tilewright

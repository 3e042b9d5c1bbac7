#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/build.h"
#include "compiler/launch_plan.h"
#include "library/library_build.h"
#include "simulator/machine/prepared_kernel.h"
#include "tilewright/hopper.h"
#include "tilewright/library.h"

// The simulator copies by its own reading of a tensor_map, a launch by what it encodes for the
// driver: both are the same, of every kernel of the library.
namespace tilewright {
namespace {

constexpr std::int64_t kMultiprocessors = 132;

std::int64_t swizzle_bytes(runtime::TensorMapSwizzle swizzle) {
  switch (swizzle) {
    case runtime::TensorMapSwizzle::none:
      return 0;
    case runtime::TensorMapSwizzle::bytes32:
      return 32;
    case runtime::TensorMapSwizzle::bytes64:
      return 64;
    case runtime::TensorMapSwizzle::bytes128:
      return 128;
  }
  return -1;
}

// Reductions compute in it, and no two are alike to them.
runtime::TensorMapType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return runtime::TensorMapType::f32;
    case DType::bf16:
      return runtime::TensorMapType::bf16;
    case DType::f16:
      return runtime::TensorMapType::f16;
    case DType::i32:
      return runtime::TensorMapType::i32;
    case DType::i64:
      return runtime::TensorMapType::i64;
    case DType::u32:
      return runtime::TensorMapType::u32;
    case DType::f8e4m3:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      break;
  }
  return runtime::TensorMapType::u8;
}

// What they differ in; empty where in nothing. `origin`: where it begins.
std::string difference(const simulator::TensorMap& read, const runtime::TensorMapSpec& encoded,
                       std::int64_t origin) {
  if (encoded.rank != read.rank) return "rank";
  for (int axis = 0; axis < read.rank; ++axis) {
    const auto size = static_cast<std::int64_t>(encoded.sizes[axis]);
    if (size != read.extents[axis]) return "size";
    if (static_cast<std::int64_t>(encoded.box[axis]) != read.box[axis]) return "box";
    if (encoded.element_strides[axis] != 1) return "element stride";
    // Nothing steps along an axis of one element.
    if (axis == 0 || size <= 1) continue;
    if (static_cast<std::int64_t>(encoded.strides[axis - 1]) != read.strides[axis]) return "stride";
  }
  if (runtime::size_of(encoded.type) != read.element_bytes) return "element";
  if (encoded.type != type_of(read.tensor->dtype)) return "type";
  if (swizzle_bytes(encoded.swizzle) != read.swizzle) return "swizzle";
  // What lies outside is zeros in the simulator.
  if (encoded.fill != runtime::TensorMapFill::zero) return "fill";
  if (encoded.base != read.tensor->data + origin) return "base";
  return "";
}

// How many maps were compared.
int expect_same(const simulator::PreparedKernel& prepared, const compiler::LaunchPlan& plan) {
  std::size_t next = 0;
  for (const simulator::TensorMap& read : prepared.maps) {
    std::vector<std::int64_t> origins{read.origin};
    if (read.ragged_axis >= 0) origins.push_back(0);  // for boxes outside
    for (const std::int64_t origin : origins) {
      const runtime::TensorMapSpec& encoded = plan.maps.at(next++).spec;
      EXPECT_EQ(read.name, encoded.name);
      EXPECT_EQ(difference(read, encoded, origin), "") << read.name;
    }
  }
  EXPECT_EQ(next, plan.maps.size());
  return static_cast<int>(plan.maps.size());
}

// Row-major tensors of the entry's shapes at addresses that nobody reads, and behind them those
// that the runtime adds.
Arguments arguments_of(const LibraryKernel& entry, const OptionValues& options,
                       const ir::Kernel& machine) {
  Arguments arguments;
  const auto add = [&](const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size(); axis-- > 1;) {
      strides[axis - 1] = strides[axis] * shape[axis];
    }
    const std::uintptr_t address = (arguments.tensors.size() + 1) << 36;
    arguments.tensors.push_back({name,
                                 dtype,
                                 std::move(shape),
                                 std::move(strides),
                                 reinterpret_cast<std::byte*>(address),
                                 {}});
  };
  std::vector<LibraryTensor> tensors = entry.tensors;
  std::erase_if(tensors, [&](const LibraryTensor& tensor) {
    return !tensor.option.empty() && !options.boolean(tensor.option);
  });
  std::size_t next = 0;
  for (const ir::Parameter& parameter : machine.parameters) {
    add(parameter.name, parameter.dtype,
        parameter.is_owned() ? parameter.constant_shape() : shape_of(tensors.at(next++), options));
  }
  return arguments;
}

compiler::GpuProgram program_of(const LibraryKernel& entry, const OptionValues& options) {
  const Kernel kernel = build_choice(entry, choose_schedule(entry, options, "sm_90a"));
  return compiler::translate(kernel.finish(), ir::default_target());
}

int compare(const LibraryKernel& entry, const std::vector<std::string>& settings) {
  SCOPED_TRACE(entry.name + " " + testing::PrintToString(settings));
  const OptionValues options = resolve_options(entry, settings);
  const compiler::GpuProgram program = program_of(entry, options);
  const Arguments arguments = arguments_of(entry, options, program.machine);
  const simulator::PreparedKernel prepared =
      simulator::prepare(program.machine, arguments, kMultiprocessors);
  return expect_same(prepared, compiler::plan_launch(program.machine, program.source.parameters,
                                                     arguments, kMultiprocessors));
}

TEST(TensorMaps, AreReadAsTheyAreEncoded) {
  int maps = 0;
  for (const LibraryKernel& entry : kernel_library()) {
    if (entry.is_program()) continue;
    maps += compare(entry, {"schedule=tile"});
    for (const LibrarySchedule& schedule : entry.schedules) {
      if (schedule.target != "sm_90a") continue;
      maps += compare(entry, {"schedule=" + schedule.name});
    }
  }
  EXPECT_GT(maps, 200);
}

// Lengths that end inside of a box, packed sequences and heads that are shared.
TEST(TensorMaps, AreReadAsTheyAreEncodedInOddSizes) {
  EXPECT_GT(compare(find_kernel("attention_forward"),
                    {"queries=77", "keys=130", "heads=6", "kv_heads=2", "dim=96", "causal=true"}),
            2);
  EXPECT_GT(compare(find_kernel("attention_varlen_forward"), {"batch=3", "dim=80", "dim_v=64"}), 2);
  EXPECT_GT(compare(find_kernel("gemm"), {"m=33", "n=72", "k=40"}), 1);
}

// Also those that no kernel of the library copies.
TEST(TensorMaps, HaveTheTypesOfTheirTensors) {
  const auto encoded = [](DType dtype) {
    Kernel kernel("copy");
    const Tensor Y = kernel.out("Y", dtype, {32, 32});
    kernel.ctas(1);
    SharedTile tile(kernel, "tile", dtype, 32, 32);
    kernel.roles({role("store", warps(1), registers(24), [&] { tma_store(Y(all, all), tile); })});
    const compiler::GpuProgram program = compiler::translate(kernel.finish(), ir::default_target());
    Arguments arguments;
    auto* const data = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 36);
    arguments.tensors.push_back({"Y", dtype, {32, 32}, {32, 1}, data});
    return compiler::plan_launch(program.machine, program.source.parameters, arguments,
                                 kMultiprocessors)
        .maps.at(0)
        .spec.type;
  };
  for (const DType dtype : {f32, f16, bf16, i32, i64, u32, f8e4m3, i8, u8}) {
    EXPECT_EQ(encoded(dtype), type_of(dtype)) << name_of(dtype);
  }
}

TEST(TensorMaps, DifferencesAreNoticed) {
  const LibraryKernel& entry = find_kernel("gemm");
  const OptionValues options = resolve_options(entry, {});
  const compiler::GpuProgram program = program_of(entry, options);
  const Arguments arguments = arguments_of(entry, options, program.machine);
  const simulator::PreparedKernel prepared =
      simulator::prepare(program.machine, arguments, kMultiprocessors);
  const runtime::TensorMapSpec encoded =
      compiler::plan_launch(program.machine, program.source.parameters, arguments, kMultiprocessors)
          .maps[0]
          .spec;
  const simulator::TensorMap& read = prepared.maps[0];
  ASSERT_EQ(difference(read, encoded, read.origin), "");
  const auto changed = [&](auto&& change) {
    runtime::TensorMapSpec other = encoded;
    change(other);
    return difference(read, other, read.origin);
  };
  EXPECT_EQ(changed([](auto& spec) { spec.box[0] *= 2; }), "box");
  EXPECT_EQ(changed([](auto& spec) { spec.strides[0] += 16; }), "stride");
  EXPECT_EQ(changed([](auto& spec) { spec.sizes[1] -= 1; }), "size");
  EXPECT_EQ(changed([](auto& spec) { spec.element_strides[0] = 2; }), "element stride");
  EXPECT_EQ(changed([](auto& spec) { spec.type = runtime::TensorMapType::f16; }), "type");
  EXPECT_EQ(changed([](auto& spec) { spec.swizzle = runtime::TensorMapSwizzle::none; }), "swizzle");
  EXPECT_EQ(changed([](auto& spec) { spec.fill = runtime::TensorMapFill::nan; }), "fill");
}

}  // namespace
}  // namespace tilewright

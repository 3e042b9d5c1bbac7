#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/text.h"
#include "ir/verifier.h"
#include "simulator/machine/machine.h"
#include "support/number_formats.h"

// Machine-form kernels written by hand, and tensors for them.
namespace tilewright::simulator {

struct MachineTensor {
  MachineTensor(std::string name, DType dtype, std::vector<std::int64_t> shape)
      : name(std::move(name)), dtype(dtype), shape(std::move(shape)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : this->shape) count *= extent;
    values.assign(count, 0);
    bytes.assign(count * size_of(dtype), std::byte{0xff});
  }
  // Values that the dtype holds exactly.
  void randomise(unsigned seed) {
    std::mt19937 random(seed);
    for (float& value : values) {
      value = round_to(dtype, static_cast<float>(static_cast<int>(random() % 33) - 16) / 8);
    }
    from_float(dtype, values.data(), bytes.data(), values.size());
  }
  void read_back() {
    if (is_float(dtype)) to_float(dtype, bytes.data(), values.data(), values.size());
  }
  std::int32_t integer(std::size_t i) const {
    std::int32_t value = 0;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    return value;
  }
  float at(std::int64_t row, std::int64_t column) const { return values[row * shape[1] + column]; }
  TensorArgument argument() {
    TensorArgument tensor{name, dtype, shape, {}, bytes.data()};
    tensor.strides.assign(shape.size(), 1);
    for (std::size_t axis = shape.size() - 1; axis > 0; --axis) {
      tensor.strides[axis - 1] = tensor.strides[axis] * shape[axis];
    }
    return tensor;
  }

  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  std::vector<std::byte> bytes;
};

using Tensors = std::initializer_list<MachineTensor*>;

inline MachineReport run(const std::string& text, Tensors tensors, MachineOptions options = {}) {
  const ir::Kernel kernel = ir::parse_text(text, "kernel.tw");
  Arguments arguments;
  for (MachineTensor* tensor : tensors) arguments.tensors.push_back(tensor->argument());
  MachineReport report = run_machine(kernel, arguments, options);
  for (MachineTensor* tensor : tensors) tensor->read_back();
  return report;
}

inline MachineReport run_seed(const std::string& text, Tensors tensors, std::uint64_t seed) {
  MachineOptions options;
  options.seed = seed;
  return run(text, tensors, options);
}

// Of the faults that so many seeds show; "ok" among them where one shows none.
inline std::set<std::string> kinds_of(const std::string& text, Tensors tensors,
                                      std::uint64_t seeds) {
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const MachineReport report = run_seed(text, tensors, seed);
    kinds.insert(report.ok() ? "ok" : report.faults[0].kind);
  }
  return kinds;
}

// The text with one passage, which must be there, changed.
inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline int line_of(const std::string& text, const std::string& passage) {
  const std::size_t at = text.find(passage);
  EXPECT_NE(at, std::string::npos) << passage;
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + at, '\n'));
}

inline std::string first_message(const MachineReport& report) {
  return report.ok() ? std::string() : report.faults[0].message + "\n" + report.faults[0].missing;
}

// C {m, n} f32 = A {m, k} B {n, k}^T, bf16, tiles of 64 x 128 x 64, a ring of two stages.
inline const std::string& gemm_text() {
  static const std::string text = R"(kernel "gemm" machine
dim m
dim n
dim k
in A: bf16[m, k] = %0
in B: bf16[n, k] = %1
out C: f32[m, n] = %2
grid ((ceil_div(m, 64) * (n // 128)))
threads 256
shared_bytes 49184
body () {
  %10: tensor_map = tensor_map %0 {name = "A map", box = [64, 64], swizzle = 128}
  %11: tensor_map = tensor_map %1 {name = "B map", box = [128, 64], swizzle = 128}
  %12: shared<bf16, 2x64x64> = shared {name = "A", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 2, offset = 0}
  %13: shared<bf16, 2x128x64> = shared {name = "B", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 2, offset = 16384}
  %14: mbarriers<2> = mbarriers {name = "full", arrivals = 1, offset = 49152}
  %15: mbarriers<2> = mbarriers {name = "empty", arrivals = 4, offset = 49168}
  mbarrier_init %14 {arrivals = 1}
  mbarrier_init %15 {arrivals = 4}
  fence_barrier_init
  cta_sync
  %20: i32 = constant {value = 0}
  %21: i32 = constant {value = 1}
  %22: i32 = constant {value = 2}
  %23: i32 = constant {value = 64}
  %24: i32 = constant {value = 128}
  %25: i32 = constant {value = 8192}
  %26: i32 = constant {value = 16384}
  %27: bool = constant {value = 1}
  %28: i32 = dim {dim = dim((k // 64))}
  %29: i32 = dim {dim = dim((n // 128))}
  %30: i32 = dim {dim = dim(m)}
  %31: i32 = dim {dim = dim(n)}
  %32: i32 = cta_index
  %33: i32 = div %32, %29
  %34: i32 = mod %32, %29
  %35: i32 = mul %33, %23
  %36: i32 = mul %34, %24
  set_max_registers {count = 24, increase = 0, first_warp = 4}
  role {name = "load", first_warp = 4, warps = 1} (%39: i32) {
    %40: i32, %41: i32 = for_loop %20, %28, %21, %20, %21 (%42: i32, %43: i32, %44: i32) {
      mbarrier_wait %15, %43, %44
      mbarrier_expect_tx %14, %43 {bytes = 24576}
      %45: i32 = mul %43, %25
      %46: i32 = mul %43, %26
      %47: i32 = mul %42, %23
      tma_load %10, %12, %45, %14, %43, %47, %35 {bytes = 8192}
      tma_load %11, %13, %46, %14, %43, %47, %36 {bytes = 16384}
      %48: i32 = add %43, %21
      %49: bool = eq %48, %22
      %50: i32 = select %49, %20, %48
      %51: i32 = sub %21, %44
      %52: i32 = select %49, %51, %44
      yield %50, %52
    }
    yield
  }
  role {name = "math", first_warp = 0, warps = 4} (%60: i32) {
    set_max_registers {count = 256, increase = 1}
    %61: registers<f32, 64> = registers {name = "acc"}
    %62: i32, %63: i32 = for_loop %20, %28, %21, %20, %20 (%64: i32, %65: i32, %66: i32) {
      mbarrier_wait %14, %65, %66
      %67: i32 = mul %65, %25
      %68: i32 = mul %65, %26
      %69: bool = ne %64, %20
      wgmma_fence %61
      wgmma_ss %61, %12, %67, %13, %68, %69 {n = 128, k = 16, descriptor_a = 281474993487876, descriptor_b = 281474993487876}
      wgmma_ss %61, %12, %67, %13, %68, %27 {n = 128, k = 16, descriptor_a = 281474993487876, descriptor_b = 281474993487876, step_a = 32, step_b = 32}
      wgmma_ss %61, %12, %67, %13, %68, %27 {n = 128, k = 16, descriptor_a = 281474993487876, descriptor_b = 281474993487876, step_a = 64, step_b = 64}
      wgmma_ss %61, %12, %67, %13, %68, %27 {n = 128, k = 16, descriptor_a = 281474993487876, descriptor_b = 281474993487876, step_a = 96, step_b = 96}
      wgmma_commit
      wgmma_wait %61 {count = 0}
      mbarrier_arrive %15, %65
      %70: i32 = add %65, %21
      %71: bool = eq %70, %22
      %72: i32 = select %71, %20, %70
      %73: i32 = sub %21, %66
      %74: i32 = select %71, %73, %66
      yield %72, %74
    }
    store_registers %2, %61, %35, %36, %30, %31 {sizes = [64, 128], layout = register_layout[64x128|r:2@1:1,2@0:8,16@1:8|l:4@1:2,8@0:1|w:4@0:16]}
    yield
  }
}
)";
  return text;
}

struct GemmTensors {
  GemmTensors(std::int64_t m, std::int64_t n, std::int64_t k)
      : a("A", DType::bf16, {m, k}), b("B", DType::bf16, {n, k}), c("C", DType::f32, {m, n}) {
    a.randomise(1);
    b.randomise(2);
  }
  // The largest difference to the product in float64, relative to its largest entry.
  double error() const {
    double worst = 0, largest = 0;
    for (std::int64_t i = 0; i < c.shape[0]; ++i) {
      for (std::int64_t j = 0; j < c.shape[1]; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < a.shape[1]; ++l) sum += double{a.at(i, l)} * b.at(j, l);
        const double difference = std::abs(sum - c.at(i, j));
        // NaN, which poisons C, is not to be lost.
        worst = difference <= worst ? worst : difference;
        largest = std::max(largest, std::abs(sum));
      }
    }
    return worst / largest;
  }
  MachineTensor a, b, c;
};

}  // namespace tilewright::simulator

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/repeated_stores.h"
#include "codegen/cuda/cuda_printer.h"
#include "ir/ir.h"
#include "runtime/module.h"
#include "runtime/tensor_map.h"
#include "support/arguments.h"

namespace tilewright::compiler {

// One launch with everything known but the bits of its tensor maps.
struct LaunchPlan {
  struct Map {
    std::size_t offset = 0;  // of its value, for ParameterBuffer::set
    runtime::TensorMapSpec spec;
  };
  bool empty = false;  // every output is, or no CTA has anything to do: nothing is launched
  runtime::LaunchShape shape;
  runtime::ParameterBuffer parameters;
  std::vector<Map> maps;
  std::optional<std::size_t> epoch;  // offset of the epoch, an i32, which every launch counts up
  std::optional<std::size_t> epoch_word;  // offset of its address, where it is in memory
  std::optional<std::size_t> report;      // offset of the address of a codegen::CheckReport
  std::optional<std::size_t> watch;       // the same of a codegen::WatchReport
};

// As a tensor map has them: the type of the elements, and the swizzle of so many bytes.
runtime::TensorMapType tensor_map_type(DType dtype);
runtime::TensorMapSwizzle tensor_map_swizzle(std::int64_t bytes);

// Whether the kernel writes tensors, and none of them has an element.
bool outputs_are_empty(const ir::Kernel& kernel, const Arguments& arguments);

// Checks the arguments against the kernel, binds its dimensions and evaluates what the launch
// passes. Refuses a launch that makes one of the repeated stores. Needs neither driver nor GPU.
LaunchPlan plan_launch(const ir::Kernel& machine,
                       const std::vector<codegen::LaunchParameter>& parameters,
                       const Arguments& arguments, std::int64_t multiprocessors,
                       const std::vector<analysis::RepeatedStore>& repeated_stores = {});

// Refuses what a launch on a GPU would of the tensors that TMA copies: their base, their strides.
// The arguments may leave out what is not the caller's.
void check_tensor_maps(const ir::Kernel& machine, const Arguments& arguments,
                       std::int64_t multiprocessors);

// Refuses sizes, and a grid of these, that the kernel does not take, of any form: a machine form
// may have another grid than its user wrote. The arguments may leave out what is not the caller's.
void check_sizes(const ir::Kernel& kernel, const Arguments& arguments,
                 std::int64_t multiprocessors);

}  // namespace tilewright::compiler

#include "library/rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "analysis/logarithms.h"
#include "compiler/target.h"
#include "ir/program.h"
#include "library/accuracy.h"
#include "library/library_build.h"
#include "support/number_formats.h"

namespace tilewright::library {
namespace {

// The kernels of a workload's tile-level definition.
std::vector<std::shared_ptr<const ir::Kernel>> meaning_of(const Workload& workload) {
  const LibraryKernel& kernel = *workload.kernel;
  OptionValues options = workload.options;
  if (options.has("schedule")) options.set("schedule", "tile");
  if (kernel.is_program()) return build_program(kernel, {nullptr, options, {}}).finish().kernels;
  if (!kernel.build) return {};
  return {std::make_shared<const ir::Kernel>(
      trace_entry(kernel, options, compiler::parse_target("interpreter")).finish())};
}

}  // namespace

double rounding_of_operands(const Workload& workload) {
  double coarsest = 0;
  for (const std::shared_ptr<const ir::Kernel>& kernel : meaning_of(workload)) {
    std::map<ir::ValueId, const ir::Operation*> casts;
    ir::for_each(kernel->body, [&](const ir::Operation& o) {
      if (o.op == ir::Op::cast) casts[o.results[0]] = &o;
      if (o.op != ir::Op::dot) return;
      for (const std::size_t side : {0, 1}) {
        auto at = casts.find(o.operands[side]);
        for (; at != casts.end(); at = casts.find(at->second->operands[0])) {
          const DType to = kernel->type(at->first).dtype;
          const DType from = kernel->type(at->second->operands[0]).dtype;
          if (from == DType::f32 && is_float(to)) coarsest = std::max(coarsest, unit_roundoff(to));
        }
      }
    });
  }
  return coarsest;
}

// A row in which one term outweighs the others may err by all of that term's rounding. Two terms of
// about the same size do more where they are rounded to opposite sides: v1 + v2 is then off by
// e (v1 - v2), which is longer by sqrt((1 + c) / (1 - c)) where they correlate by -c. Of random
// elements c lies around 0 by 1 / sqrt(row). Three times that is enough: few rows have two such
// terms, whose roundings are the largest as well.
double error_of_terms(double rounding, double row) {
  constexpr double kDeviations = 3, kFewest = 16;  // elements; rows of fewer do as these
  const double c = kDeviations / std::sqrt(std::max(row, kFewest));
  return rounding * std::sqrt((1 + c) / (1 - c));
}

double error_of_byte_products(const Workload& workload) {
  // Measured with cuBLAS's fast accumulation on an H200 (docs/log/2026-11-23-rows-again.md): 1.3e-3
  // at 4096 terms, 3.1e-3 at 16384, so at most 3.2e-7 for each.
  constexpr double kByteProduct = 3.2e-7;
  bool has_bytes = false;
  double elements = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const DType dtype = workload.tensors[i].dtype();
    const bool is_output = workload.parameters[i]->is_output;
    has_bytes = has_bytes || (!is_output && is_float(dtype) && size_of(dtype) == 1);
    if (is_output) elements = std::max(elements, double(workload.tensors[i].elements()));
  }
  if (!has_bytes || elements == 0) return 0;
  const double operations = workload.kernel->floating_operations(workload.options, {});
  return kByteProduct * operations / (2 * elements);
}

// Other dtypes than f32 round by more.
std::vector<double> least_magnitudes(const Workload& workload) {
  std::set<std::string> logarithms;
  for (const std::shared_ptr<const ir::Kernel>& kernel : meaning_of(workload)) {
    logarithms.merge(analysis::stored_logarithms(*kernel));
  }
  std::vector<double> least;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const bool is_logarithm = workload.tensors[i].dtype() == DType::f32 &&
                              logarithms.count(workload.parameters[i]->name) > 0;
    least.push_back(is_logarithm ? kLogarithm : 0);
  }
  return least;
}

}  // namespace tilewright::library

#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/text.h"
#include "passes/pipeline.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "target/verify.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// Small kernels into which faults are seeded, and what shows of them.
namespace tilewright::simulator {

inline constexpr int kSize = 64;

struct Subject {
  ir::Kernel machine;
  std::vector<HostTensor> inputs;
  std::vector<std::string> names;
  std::vector<std::int64_t> output;  // the shape of C
};

inline HostTensor numbers(std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(bf16, std::move(shape), seed);
}

// One launch. What it leaves in C.
inline HostTensor launch(const Subject& subject, const ir::Kernel& kernel, std::uint64_t seed,
                         MachineReport& report) {
  std::vector<HostTensor> tensors = subject.inputs;
  tensors.push_back(HostTensor::poisoned(bf16, subject.output));
  std::vector<std::string> names = subject.names;
  names.push_back("C");
  Arguments arguments;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    HostTensor& tensor = tensors[i];
    arguments.tensors.push_back(
        {names[i], tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
  }
  MachineOptions options;
  options.seed = seed;
  options.multiprocessors = kernel.cluster;
  report = run_machine(kernel, arguments, options);
  return tensors.back();
}

// What shows of a kernel, over some schedules: a kind of fault, "mismatch" or nothing.
inline std::string symptom(const Subject& subject, const ir::Kernel& kernel) {
  MachineReport report;
  const HostTensor wanted = launch(subject, subject.machine, 0, report);
  EXPECT_TRUE(report.ok()) << report.faults[0].message;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const HostTensor got = launch(subject, kernel, seed, report);
    if (!report.ok()) return report.faults[0].kind;
    if (got != wanted) return "mismatch";
  }
  return "";
}

inline const FaultKind& kind(int number) {
  const std::vector<FaultKind>& kinds = fault_kinds();
  return *std::find_if(kinds.begin(), kinds.end(),
                       [&](const FaultKind& each) { return each.number == number; });
}

inline bool is_rejected(const ir::Kernel& kernel) {
  try {
    target::verify(kernel);
    return false;
  } catch (const Error&) {
    return true;
  }
}

struct Count {
  int mutants = 0, caught = 0, equivalent = 0, rejected = 0;
};

// Every mutant of the kind is refused, found as what it is, or argued to be equivalent, and those
// that are run clean.
inline Count expect_found(int number, const Subject& subject) {
  Count count;
  for (const Mutant& mutant : mutants_of(kind(number), subject.machine)) {
    SCOPED_TRACE(mutant.operation + " " + mutant.change + " at " +
                 std::to_string(mutant.where.line));
    ++count.mutants;
    const ir::Kernel changed = mutant.apply(subject.machine);
    EXPECT_FALSE(ir::equal(changed, subject.machine));
    EXPECT_GT(mutant.where.line, 0);
    if (is_rejected(changed)) {
      ++count.rejected;
      continue;
    }
    const std::string found = symptom(subject, changed);
    if (!mutant.equivalent.empty()) {
      EXPECT_EQ(found, "") << mutant.equivalent;
      ++count.equivalent;
      continue;
    }
    const auto& classes = kind(number).classes;
    EXPECT_NE(std::find(classes.begin(), classes.end(), found), classes.end())
        << "found as '" << found << "'";
    ++count.caught;
  }
  return count;
}

inline ir::Kernel lowered(const Kernel& kernel) {
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  return machine;
}

// A kernel from X to C, both of the same shape, by one cluster of CTAs.
struct XToC {
  XToC(const char* name, std::int64_t rows, std::int64_t columns, int ctas = 1)
      : kernel(name),
        X(kernel.in("X", bf16, {rows, columns})),
        C(kernel.out("C", bf16, {rows, columns})),
        shape{rows, columns} {
    kernel.ctas(ctas, ctas);
  }
  Subject subject(std::uint64_t seed) const {
    return {lowered(kernel), {numbers(shape, seed)}, {"X"}, shape};
  }

  Kernel kernel;
  const Tensor X, C;
  const std::vector<std::int64_t> shape;
};

}  // namespace tilewright::simulator

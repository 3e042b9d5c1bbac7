#include "compiler/processor.h"

#include <cstdlib>

#include "cpu/instruction_sets.h"
#include "cpu/kernels.h"
#include "cpu/pool.h"
#include "cpu/processors.h"
#include "tilewright/error.h"

namespace tilewright::compiler {

Processor examine_processor() {
  Processor processor;
  const auto note = [&](const auto& examine) {
    try {
      examine();
    } catch (const Error& error) {
      processor.problems.emplace_back(error.what());
    }
  };
  processor.instruction_sets = cpu::instruction_sets();
  processor.affinity = cpu::allowed_processors();
  processor.quota = cpu::quota_processors();
  note([&] {
    processor.instruction_set = cpu::choose_kernels(std::getenv("TILEWRIGHT_CPU_ISA")).name;
  });
  note([&] { processor.threads = cpu::thread_count(); });
  return processor;
}

}  // namespace tilewright::compiler

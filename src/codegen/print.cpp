#include "codegen/print.h"

#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::codegen {
namespace {

struct Printer {
  std::string_view name;
  CudaSource (*print)(const ir::Kernel& machine);
};
constexpr Printer kPrinters[] = {{"cuda", print_cuda}};

}  // namespace

CudaSource print(const ir::Kernel& machine) {
  const target::Target& target = target::target_of(machine);
  for (const Printer& printer : kPrinters) {
    if (printer.name == target.printer) return printer.print(machine);
  }
  Diagnostic(machine.where, target.name + " is simulated only: nothing prints its kernels")
      .fix("use sim:" + target.name)
      .raise();
}

}  // namespace tilewright::codegen

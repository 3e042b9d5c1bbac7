#include "compiler/check_report.h"

#include <fmt/format.h>

#include <new>
#include <vector>

#include "analysis/access_bounds.h"
#include "support/diagnostic.h"

namespace tilewright::compiler {
std::string warp_text(std::int64_t cta, std::int64_t warp, const ir::Kernel& machine) {
  std::string role = "kernel";
  std::int64_t first = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::role) return;
    const std::int64_t begin = o.attributes.integer(ir::Key::first_warp);
    if (warp < begin || warp >= begin + o.attributes.integer(ir::Key::warps)) return;
    role = o.attributes.text(ir::Key::name);
    first = begin;
  });
  return fmt::format("{} warp {} of CTA {}", role, warp - first, cta);
}

FailedCheck failed_check(const codegen::CheckReport& report, const ir::Kernel& machine) {
  std::vector<const ir::Operation*> checks;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::check) checks.push_back(&o);
  });
  const auto number = static_cast<std::size_t>(report.check);
  if (number >= checks.size()) {
    return {machine.where,
            fmt::format("{} reports its check {}, and it has {}", machine.name, report.check,
                        checks.size()),
            false};
  }
  const ir::Operation& check = *checks[number];
  const std::vector<std::int64_t> numbers(report.numbers, report.numbers + ir::kCheckNumbers);
  return {check.where, fmt::format("out of bounds: {}\n  check  {}",
                                   analysis::fill(check.attributes.text(ir::Key::message), numbers),
                                   warp_text(report.cta, report.warp, machine))};
}

CheckReports::CheckReports(const runtime::Device& device, const ir::Kernel& machine)
    : machine_(machine),
      memory_(device, sizeof(codegen::CheckReport)),
      reporter_([this] { raise(); }) {
  new (memory_.data()) codegen::CheckReport;
}

codegen::CheckReport* CheckReports::address() const {
  return static_cast<codegen::CheckReport*>(memory_.data());
}

void CheckReports::raise() const {
  const volatile codegen::CheckReport& report = *address();
  if (report.written == 0) return;
  const FailedCheck failed = failed_check(*address(), machine_);
  if (!failed.exists) Diagnostic(failed.where, failed.message, ErrorKind::internal).raise();
  Diagnostic(failed.where, failed.message, ErrorKind::result)
      .fix(
          "a condition (when) that leaves it out, or other numbers; this process can no longer use "
          "the GPU and must be restarted")
      .raise();
}

}  // namespace tilewright::compiler

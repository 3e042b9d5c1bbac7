#include <algorithm>

#include "language/core_tracing.h"
#include "language/explicit_tracing.h"
#include "support/escape.h"
#include "target/target.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

Tracer& scheduled(const char* what, SourceLocation where) {
  Tracer& tracer = Tracer::get(what, where);
  tracer.make_scheduled(where);
  return tracer;
}

Tracer& in_role(const char* what, SourceLocation where) {
  Tracer& tracer = scheduled(what, where);
  if (!tracer.role()) {
    Diagnostic(where, std::string(what) + " is called outside a role")
        .token(what)
        .fix("call it in the body of a role of Kernel::roles")
        .raise();
  }
  return tracer;
}

void plain(Tracer& tracer, Op op, std::vector<ir::ValueId> operands, ir::Attributes attributes,
           SourceLocation where) {
  tracer.append(op, std::move(operands), {}, std::move(attributes), where);
}

NamedBarrier::NamedBarrier(Kernel& kernel, int threads, int count, SourceLocation where)
    : threads_(threads), count_(count) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "NamedBarrier", where);
  if (count <= 0) {
    Diagnostic(where, "NamedBarrier: " + std::to_string(count) + " barriers")
        .token("NamedBarrier")
        .fix("ask for one or more")
        .raise();
  }
  if (threads <= 0 || threads % 32 != 0) {
    Diagnostic(where, "NamedBarrier: " + std::to_string(threads) + " threads")
        .token("NamedBarrier")
        .fix("whole warps take part: a multiple of 32")
        .raise();
  }
  first_ = tracer.next_named_barrier;
  tracer.next_named_barrier += count;
  const std::int64_t barriers = target_limits(tracer.kernel().target, where).named_barriers;
  if (tracer.next_named_barrier > barriers) {
    Diagnostic(where, "NamedBarrier: " + std::to_string(tracer.next_named_barrier - 1) +
                          " named barriers are asked for")
        .token("NamedBarrier")
        .fix("a CTA has " + std::to_string(barriers - 1) + " beside its own, barrier 0")
        .raise();
  }
}

namespace {

void named(Op op, const IndexOperand& index, int first, int threads, int count) {
  const char* what = op == Op::named_sync ? "sync" : "arrive";
  Tracer& tracer = in_role(what, index.where);
  const auto known = tracer.known(tracer.use(index.index.handle(), what, index.where));
  if (known && (*known < 0 || *known >= count)) {
    Diagnostic(index.where, std::string(what) + ": barrier " + std::to_string(*known) + " of " +
                                std::to_string(count))
        .token(what)
        .fix("barriers count from 0 to " + std::to_string(count - 1))
        .raise();
  }
  tracer.barrier_uses.push_back({what, threads, index.where});
  plain(tracer, op, {tracer.use(index.index.handle(), what, index.where)},
        {{Key::first, std::int64_t{first}},
         {Key::threads, std::int64_t{threads}},
         {Key::count, std::int64_t{count}}},
        index.where);
}

}  // namespace

void NamedBarrier::sync(const IndexOperand& index) {
  named(Op::named_sync, index, first_, threads_, count_);
}
void NamedBarrier::arrive(const IndexOperand& index) {
  named(Op::named_arrive, index, first_, threads_, count_);
}

void elect(FunctionRef<void()> body, SourceLocation where) {
  in_role("elect", where).trace_block(Op::elect, {}, body, where);
}
void fence_proxy_async(SourceLocation where) {
  plain(in_role("fence_proxy_async", where), Op::fence_proxy_async, {}, {}, where);
}
void warp_sync(SourceLocation where) {
  plain(in_role("warp_sync", where), Op::warp_sync, {}, {}, where);
}
void cluster_sync(SourceLocation where) {
  plain(scheduled("cluster_sync", where), Op::cluster_sync, {}, {}, where);
}

namespace {

Index special(Op op, const char* what, SourceLocation where) {
  Tracer& tracer = scheduled(what, where);
  return Index(tracer.handle(tracer.emit(op, {}, Type::scalar(i32), {}, where)));
}

}  // namespace

Index cta_index(SourceLocation where) { return special(Op::cta_index, "cta_index", where); }
Index cta_count(SourceLocation where) { return special(Op::cta_count, "cta_count", where); }
Index cluster_rank(SourceLocation where) {
  return special(Op::cluster_rank, "cluster_rank", where);
}
Index warp_index(SourceLocation where) { return special(Op::warp_index, "warp_index", where); }
Dim multiprocessors() { return Dim::symbol(ir::kMultiprocessors, at_least(1)); }

void Kernel::target(std::string_view name, SourceLocation where) {
  tracer(where).name_target(name, where);
}

void Kernel::ctas(const Dim& count, int cluster, SourceLocation where) {
  Tracer& tracer = ExplicitTracing::scheduled(*this, "ctas", where);
  tracer.require_no_grid("ctas", where);
  tracer.check_count(count, "ctas", "CTAs", where);
  const std::int64_t most = target_limits(tracer.kernel().target, where).cluster;
  if (cluster < 1 || cluster > most) {
    Diagnostic(where, "ctas: a cluster of " + std::to_string(cluster))
        .token("ctas")
        .fix("1 to " + std::to_string(most) + " CTAs")
        .raise();
  }
  tracer.kernel().grid = {count};
  tracer.kernel().cluster = cluster;
}

namespace {

void check_barriers(Tracer& tracer, SourceLocation roles) {
  const std::int64_t threads = tracer.kernel().threads;
  for (const Tracer::BarrierUse& use : tracer.barrier_uses) {
    if (use.threads <= threads) continue;
    Diagnostic(use.where, std::string(use.what) + ": a named barrier of " +
                              std::to_string(use.threads) + " threads, and the CTA has " +
                              std::to_string(threads))
        .token(use.what)
        .note(roles, "the roles are declared")
        .fix("give NamedBarrier the threads of the warps that sync and arrive")
        .raise();
  }
}

void check_roles_place(Tracer& tracer, std::size_t count, SourceLocation where) {
  const auto refuse = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "roles: " + problem).token("roles").fix(fix).raise();
  };
  if (tracer.role()) {
    refuse("inside the role \"" + tracer.role()->name + "\"",
           "roles stand side by side in one call");
  }
  if (tracer.nested()) {
    refuse("inside a loop or condition", "loop inside the roles: each runs once a CTA");
  }
  if (tracer.kernel().threads != 0) {
    refuse("the roles of \"" + tracer.kernel().name + "\" are declared twice",
           "give them in one call");
  }
  if (count == 0) refuse("no role is given", "give at least one");
}

std::int64_t registers_of(const RoleSpec& role) {
  return std::int64_t{role.warps} * 32 * role.registers;
}

[[noreturn]] void refuse_role(std::span<const RoleSpec> roles, const RoleSpec& role,
                              const std::string& problem, const std::string& fix) {
  Diagnostic error(role.where, "role \"" + escaped_comment(role.name) + "\": " + problem);
  for (const RoleSpec& each : roles) {
    error.note({}, "\"" + escaped_comment(each.name) + "\" takes " + std::to_string(each.warps) +
                       " warps, " + std::to_string(registers_of(each)) + " registers");
  }
  error.token('"' + role.name + '"').fix(fix).raise();
}

}  // namespace

void Kernel::roles(std::initializer_list<RoleSpec> list, SourceLocation where) {
  roles(std::span<const RoleSpec>(list.begin(), list.size()), where);
}

void Kernel::roles(std::span<const RoleSpec> roles, SourceLocation where) {
  Tracer& tracer = ExplicitTracing::scheduled(*this, "roles", where);
  check_roles_place(tracer, roles.size(), where);
  if (target::target_of(tracer.kernel()).core) return trace_sequencers(tracer, roles, where);
  const TargetLimits& limits = target_limits(tracer.kernel().target, where);
  const auto group = static_cast<int>(limits.group_warps);
  const auto group_threads = limits.group_threads();
  const auto groups = [group](std::int64_t warps) { return (warps + group - 1) / group; };
  int warp = 0, budget = 0;
  std::int64_t registers = 0;
  for (const RoleSpec& role : roles) {
    const auto fail = [&](const std::string& problem, const std::string& fix) {
      refuse_role(roles, role, problem, fix);
    };
    if (find_control(role.name) != std::string::npos) {
      fail("its name holds a line break or another control character", "name it by one word");
    }
    if (!role.body) fail("it has no body", "give what its warps do: a function or a lambda");
    for (const RoleSpec* other = roles.data(); other != &role; ++other) {
      if (other->name == role.name) fail("two roles are named \"" + role.name + "\"", "rename one");
    }
    if (role.warps <= 0 || (role.warps > group && role.warps % group != 0)) {
      fail(std::to_string(role.warps) + " warps",
           "1 to " + std::to_string(group) + " warps, or whole warpgroups");
    }
    if (role.registers < limits.least_role_registers ||
        role.registers > limits.most_role_registers || role.registers % limits.register_unit != 0) {
      fail(std::to_string(role.registers) + " registers a thread",
           std::to_string(limits.least_role_registers) + " to " +
               std::to_string(limits.most_role_registers) + ", a multiple of " +
               std::to_string(limits.register_unit) + " (setmaxnreg)");
    }
    // A warpgroup's warps share one budget: small roles go together, others start a warpgroup.
    const bool joins =
        warp % group != 0 && warp % group + role.warps <= group && budget == role.registers;
    if (!joins) warp = static_cast<int>(groups(warp)) * group;
    budget = role.registers;
    if (role.warps > limits.warps() || warp + role.warps > limits.warps()) {
      fail("the roles so far take " +
               std::to_string(groups(std::int64_t{warp} + role.warps) * group_threads) +
               " threads of " + std::to_string(limits.threads),
           "use fewer warps");
    }
    registers += registers_of(role);
    if (registers > limits.registers) {
      fail("the roles so far take " + std::to_string(registers) + " registers of " +
               std::to_string(limits.registers),
           "lower the budgets");
    }
    tracer.trace_role({{Key::name, role.name},
                       {Key::first_warp, std::int64_t{warp}},
                       {Key::warps, std::int64_t{role.warps}},
                       {Key::registers, std::int64_t{role.registers}}},
                      role.body, role.where);
    warp += role.warps;
  }
  tracer.kernel().threads = groups(warp) * group_threads;
  check_barriers(tracer, where);
  const target::Target& target = target::target_of(tracer.kernel());
  if (target.has(ir::info(Op::set_max_registers))) return;
  const int at_launch = launch_registers(limits, tracer.kernel().threads);
  for (const RoleSpec& role : roles) {
    if (role.registers <= at_launch) continue;
    refuse_role(roles, role, std::to_string(role.registers) + " registers a thread",
                target.name + " gives all threads " + std::to_string(at_launch) +
                    ", and lets no role have more: lower the budget");
  }
}

}  // namespace tilewright

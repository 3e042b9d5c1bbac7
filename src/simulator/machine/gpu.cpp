#include "simulator/machine/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "support/diagnostic.h"

namespace tilewright::simulator {

void FaultLog::add(Fault fault) {
  const auto same_place = [](SourceLocation a, SourceLocation b) {
    return a.file == b.file && a.line == b.line;
  };
  const bool known =
      std::any_of(report_.faults.begin(), report_.faults.end(), [&](const Fault& other) {
        return other.kind == fault.kind && same_place(other.first, fault.first) &&
               same_place(other.second, fault.second);
      });
  if (!known) report_.faults.push_back(std::move(fault));
  if (stop_at_first_) throw Stopped{};
}

Cta::Cta(const Program& program, std::int64_t index, Cluster* cluster)
    : index(index),
      cluster(cluster),
      size(program.cluster),
      shared(program.shared_bytes),
      shadow(program.shared_bytes / ShadowBlock::kBytes + 1),
      barriers(program.barriers),
      live(program.warps),
      warps(program.warps),
      issues((program.warps + 3) / 4) {
  for (int w = 0; w < program.warps; ++w) {
    Warp& warp = warps[w];
    warp.cta = this;
    warp.index = w;
    warp.registers = program.launch_registers;
    warp.scalars = program.scalars;
    warp.arrays.resize(program.registers.size());
    for (const auto& [slot, op] : program.positions) {
      const std::int64_t value = op == ir::Op::cta_index      ? index
                                 : op == ir::Op::cta_count    ? program.ctas
                                 : op == ir::Op::cluster_rank ? index % program.cluster
                                                              : w % 4;
      warp.scalars[slot] = {value, static_cast<double>(value)};
    }
  }
}

Gpu::Gpu(const Program& program, const Arguments& arguments, const MachineOptions& options,
         MachineReport& report)
    : program(program),
      arguments(arguments),
      report(report),
      log(report, options.stop_at_first),
      random(options.search == Search::delays ? 0 : options.seed),
      recorder(options.recorder),
      order(*this, options.strict, options.check_order),
      resident_clusters_(
          std::max<std::int64_t>((options.resident + program.cluster - 1) / program.cluster, 1)),
      schedule_(options.search, options.seed),
      to_start_(program.ctas / program.cluster) {
  if (options.provenance) provenance.emplace(*this);
  std::iota(to_start_.begin(), to_start_.end(), 0);
  for (std::size_t i = to_start_.size(); i > 1; --i) {
    std::swap(to_start_[i - 1], to_start_[random.below(i)]);
  }
}

void Gpu::count_instructions() const {
  report.choices = schedule_.choices();
  for (std::size_t op = 0; op < executed_.size(); ++op) {
    if (executed_[op] == 0) continue;
    report.instructions[std::string(ir::info(static_cast<ir::Op>(op)).name)] = executed_[op];
  }
}

void Gpu::launch_next() {
  const std::int64_t index = to_start_.back();
  to_start_.pop_back();
  auto cluster = std::make_unique<Cluster>();
  cluster->number = started_++;
  cluster->handed = order.nothing();
  for (std::int64_t rank = 0; rank < program.cluster; ++rank) {
    cluster->ctas.push_back(
        std::make_unique<Cta>(program, index * program.cluster + rank, cluster.get()));
    Cta& cta = *cluster->ctas.back();
    cta.left = order.nothing();
    for (Mbarrier& barrier : cta.barriers)
      barrier.completed = barrier.accumulated = order.nothing();
    for (NamedBarrier& barrier : cta.named) barrier.handed = order.nothing();
    for (Warp& warp : cta.warps) {
      order.start(warp);
      runnable_.push_back(&warp);
    }
    cluster->live += program.warps;
  }
  clusters_.push_back(std::move(cluster));
}

void Gpu::run() {
  if (recorder) recorder->begin(*this);
  while (true) {
    clusters_.erase(std::remove_if(clusters_.begin(), clusters_.end(),
                                   [](const auto& cluster) { return cluster->live == 0; }),
                    clusters_.end());
    while (!to_start_.empty() && static_cast<std::int64_t>(clusters_.size()) < resident_clusters_) {
      launch_next();
    }
    if (clusters_.empty()) return;
    // Until a cluster ends, when the next one may start.
    const auto ended = [&] {
      return std::any_of(clusters_.begin(), clusters_.end(),
                         [](const auto& cluster) { return cluster->live == 0; });
    };
    while (!ended() || !events.empty()) {
      if (runnable_.empty() && events.empty()) {
        log.add(deadlock(*this, clusters_));
        return;
      }
      const Schedule::Choice choice = schedule_.next(runnable_, events);
      if (choice.event) {
        happen(choice.index);
      } else {
        run_warp(*runnable_[choice.index]);
      }
    }
  }
}

void Gpu::happen(std::size_t index) {
  Event event = std::move(events[index]);
  if (event.kind == Event::Kind::store && event.store->stage == Store::Stage::issued) {
    // Reading the source and writing the tensor are two instants.
    events[index] = event;
    return advance_store(*this, *event.issuer, *event.store, Store::Stage::read);
  }
  events[index] = std::move(events.back());
  events.pop_back();
  switch (event.kind) {
    case Event::Kind::load:
      return finish_load(*this, event);
    case Event::Kind::store:
      return advance_store(*this, *event.issuer, *event.store, Store::Stage::written);
    case Event::Kind::products:
      return run_products(*this, *event.issuer, event.sequence);
  }
}

void Gpu::block(Warp& warp, Warp::State state, const Instruction& instruction) {
  warp.state = state;
  warp.waits_at = &instruction;
  runnable_.erase(std::find(runnable_.begin(), runnable_.end(), &warp));
}

void Gpu::wake(Warp& warp) {
  warp.state = Warp::State::runnable;
  runnable_.push_back(&warp);
}

void Gpu::run_warp(Warp& warp) {
  const std::uint64_t turn = schedule_.turn();
  for (std::uint64_t i = 0; i < turn && warp.state == Warp::State::runnable; ++i) {
    const Instruction& instruction = program.code[warp.pc];
    if (instruction.once && warp.index != 0) {
      ++warp.pc;
      continue;
    }
    if (recorder) recorder->starts(warp, instruction);
    execute(warp, instruction);
    if (recorder) recorder->executed(warp, instruction);
    if (schedule_.until_seen() && is_seen(instruction)) return;
  }
}

void Gpu::finish(Warp& warp) {
  for (const auto& store : warp.stores) {
    if (store->freed) continue;
    log.add({"bulk", store->instruction->where(), program.roles[warp.role].where,
             fmt::format("bulk: a store still reads shared memory when its warp ends\n{}",
                         access("read", *store->instruction, warp)),
             store->group < 0 ? "bulk_commit and bulk_wait {count = 0, read = 1} after it"
                              : "bulk_wait {count = 0, read = 1} before the kernel ends"});
  }
  if (!warp.products.empty()) {
    const Instruction& product = *warp.products.front().instruction;
    log.add({"wgmma", product.where(), program.roles[warp.role].where,
             fmt::format("wgmma: a product is in flight when its warp ends\n{}",
                         access("issue", product, warp)),
             "wgmma_wait before the kernel ends"});
  }
  warp.state = Warp::State::ended;
  runnable_.erase(std::find(runnable_.begin(), runnable_.end(), &warp));
  --warp.cta->cluster->live;
  Cta& cta = *warp.cta;
  cta.left.join(warp.lanes);
  cta.left.join(warp.elected);
  if (--cta.live > 0) return;
  for (const Warp& each : cta.warps) check_issues(*this, each);
  check_exit(cta);
}

void Gpu::check_exit(const Cta& cta) {
  if (!order.enabled()) return;
  for (const ForeignUse& use : cta.foreign_uses) {
    const bool waited = use.barrier >= 0 && cta.left.generic[use.barrier] >= use.phase;
    if (waited || (use.by_access && cta.left.generic[use.access.agent] >= use.access.epoch)) {
      continue;
    }
    log.add({"exit", use.access.instruction->where(), program.where,
             fmt::format("exit: CTA {} may end before its shared memory is no longer used\n{}",
                         cta.index, access_line(use.verb, use.access)),
             use.barrier < 0 || use.by_access
                 ? "cluster_sync before the kernel ends"
                 : fmt::format("a wait for {} phase {} before the kernel ends",
                               barrier_name(order.agents().index(use.barrier)), use.phase - 1)});
  }
}

void Gpu::execute(Warp& warp, const Instruction& instruction) {
  const auto next = [&](auto&& effect) {
    effect(*this, warp, instruction);
    ++warp.pc;
  };
  std::vector<Scalar>& scalars = warp.scalars;
  ++report.operations;
  switch (instruction.code) {
    case Code::end:
      return finish(warp);
    case Code::move: {
      const auto& moves = program.moves[instruction.detail];
      if (moves.size() == 1) {
        scalars[moves[0].first] = scalars[moves[0].second];
      } else {
        moved_.clear();
        for (const auto& [to, from] : moves) moved_.push_back(scalars[from]);
        for (std::size_t i = 0; i < moves.size(); ++i) scalars[moves[i].first] = moved_[i];
      }
      ++warp.pc;
      return;
    }
    case Code::jump:
      warp.pc = instruction.target;
      return;
    case Code::loop_test:
      warp.pc =
          scalars[instruction.a].i < scalars[instruction.b].i ? warp.pc + 1 : instruction.target;
      return;
    case Code::loop_next:
      scalars[instruction.a].i += scalars[instruction.b].i;
      warp.pc = instruction.target;
      return;
    case Code::branch_unless:
      warp.pc = scalars[instruction.a].i ? warp.pc + 1 : instruction.target;
      return;
    case Code::enter_role: {
      const Role& role = program.roles[instruction.object];
      if (!role.has(warp.index)) {
        warp.pc = instruction.target;
        return;
      }
      warp.role = instruction.object;
      if (instruction.a != ir::kNoValue) {
        scalars[instruction.a].i = (warp.index - role.first_warp) / 4;
      }
      ++warp.pc;
      return;
    }
    case Code::leave_role:
      warp.role = instruction.object;
      ++warp.pc;
      return;
    default:
      break;
  }
  ++executed_[static_cast<std::size_t>(instruction.operation->op)];
  switch (instruction.code) {
    case Code::scalar:
      return next(execute_scalar);
    case Code::registers:
      return next(declare_registers);
    case Code::fill:
    case Code::copy:
    case Code::compute:
    case Code::coordinate:
    case Code::reduce_registers:
    case Code::any_register:
    case Code::reduce_lanes:
      return next(execute_registers);
    case Code::load_registers:
    case Code::store_registers:
      return next(access_global);
    case Code::store_matrix:
    case Code::load_matrix:
      return next(move_matrix);
    case Code::store_elements:
    case Code::load_elements:
      return next(access_elements);
    case Code::store_words:
    case Code::load_words:
      return next(move_words);
    case Code::shared_load:
    case Code::shared_store:
      return next(shared_scalar);
    case Code::atomic_add:
      return next(atomic_add);
    case Code::load_index:
      return next(load_index);
    case Code::mbarrier_init:
      return next(init_mbarriers);
    case Code::mbarrier_expect_tx:
      return next(expect_tx);
    case Code::mbarrier_arrive:
      return next(arrive);
    // These step on by themselves, since the warp may block.
    case Code::mbarrier_wait:
      return wait_mbarrier(*this, warp, instruction);
    case Code::named_sync:
      return named_barrier(*this, warp, instruction, true);
    case Code::named_arrive:
      return named_barrier(*this, warp, instruction, false);
    case Code::cluster_sync:
      return cluster_sync(*this, warp, instruction);
    case Code::set_max_registers:
      return set_max_registers(*this, warp, instruction);
    case Code::tma_load:
      return next(issue_load);
    case Code::tma_store:
      return next(issue_store);
    case Code::bulk_commit:
      bulk_commit(warp);
      break;
    case Code::bulk_wait:
      return next(bulk_wait);
    case Code::wgmma:
      return next(issue_product);
    case Code::wgmma_fence:
      for (RegisterArray& array : warp.arrays) array.touched = false;
      break;
    case Code::wgmma_commit:
      commit_products(*this, warp);
      break;
    case Code::wgmma_wait:
      return next(wait_products);
    case Code::fence_proxy_async:
      order.fence_proxy(warp, instruction.elected);
      publish_barriers(*this, warp);
      break;
    case Code::fence_barrier_init:
      publish_barriers(*this, warp);
      break;
    case Code::fence_cluster:
      order.fence_cluster(warp, instruction.elected);
      break;
    case Code::warp_sync:
      order.meet(warp);
      break;
    default:
      break;
  }
  ++warp.pc;
}

std::string Gpu::describe(const Warp& warp) const {
  return describe(warp.role, warp.index, warp.cta->index);
}

std::string Gpu::describe(int role_number, int warp, std::int64_t cta) const {
  const Role& role = program.roles[role_number];
  std::string text = fmt::format("{} warp {}", role.name, warp - role.first_warp);
  if (program.ctas > 1) text += fmt::format(" of CTA {}", cta);
  return text;
}

const BarrierArray& Gpu::barrier_array(int barrier) const {
  return *std::find_if(
      program.barrier_arrays.begin(), program.barrier_arrays.end(),
      [&](const BarrierArray& array) { return barrier < array.first + array.count; });
}

std::string Gpu::barrier_name(int barrier) const {
  const BarrierArray& array = barrier_array(barrier);
  return fmt::format("{}[{}]", array.name, barrier - array.first);
}

std::string Gpu::access(std::string verb, const Instruction& instruction, const Warp& warp) const {
  return access_line(std::move(verb), order.by_threads(warp, instruction, {}));
}

std::string Gpu::access_line(std::string verb, const Access& access) const {
  const Instruction& instruction = *access.instruction;
  std::string name(ir::info(instruction.operation->op).name);
  verb.resize(std::max<std::size_t>(verb.size(), 6), ' ');
  name.resize(std::max<std::size_t>(name.size(), 16), ' ');
  std::string text = fmt::format("  {} {} {}  {}", verb, name, format_location(instruction.where()),
                                 describe(access.role, access.warp, access.cta));
  if (access.iteration >= 0) text += fmt::format(", iteration {}", access.iteration);
  return text;
}

std::int32_t Gpu::iteration(const Warp& warp, const Instruction& instruction) const {
  if (instruction.loop == ir::kNoValue) return -1;
  return static_cast<std::int32_t>(warp.integer(instruction.loop));
}

bool Gpu::inside(const Warp& warp, const Instruction& instruction, int allocation,
                 std::int64_t address, std::int64_t bytes) {
  const Allocation& place = program.allocations[allocation];
  if (address >= place.offset && address + bytes <= place.offset + place.bytes()) return true;
  log.add({"out_of_bounds",
           instruction.where(),
           place.where,
           fmt::format("out of bounds: shared {}, which has {} stages of {:#x} bytes\n{}",
                       place.describe(address, bytes), place.stages, place.stage_bytes,
                       access("use", instruction, warp)),
           {}});
  return false;
}

void Gpu::check_held(const Warp& warp, const Instruction& instruction, const Cta& cta,
                     int allocation, std::int64_t address, std::int64_t bytes) {
  if (cta.shared.initialised(address, bytes)) return;
  const Allocation& place = program.allocations[allocation];
  // A copy that has not written them yet, though the phase that announces it may be complete.
  for (const Event& event : events) {
    if (event.kind != Event::Kind::load || event.destination != &cta) continue;
    const Transfer& transfer = program.transfers[event.instruction->detail];
    const std::int64_t end = event.address + program.maps[transfer.map].box_bytes();
    if (address >= end || event.address >= address + bytes) continue;
    const std::string barrier = barrier_name(event.barrier);
    log.add({"race", event.instruction->where(), instruction.where(),
             fmt::format("race: shared {}\n{}\n{}", place.describe(address, bytes),
                         access("write", *event.instruction, *event.issuer),
                         access("read", instruction, warp)),
             cta.barriers[event.barrier].phase > event.phase
                 ? fmt::format("an expect_tx of all bytes that are copied onto {}: phase {} was "
                               "complete before this copy",
                               barrier, event.phase)
                 : fmt::format("a wait for {} phase {} between them", barrier, event.phase)});
    return;
  }
  log.add({"uninitialised",
           instruction.where(),
           place.where,
           fmt::format("uninitialised: shared {} has not been written\n{}",
                       place.describe(address, bytes), access("read", instruction, warp)),
           {}});
}

}  // namespace tilewright::simulator

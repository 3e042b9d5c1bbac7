#include "simulator/machine/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/machine/world.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::simulator {

namespace {

std::int64_t position(const PreparedKernel& kernel, std::int64_t cta, int warp,
                      ir::PositionOp which) {
  switch (which) {
    case ir::PositionOp::cta_index:
      return cta;
    case ir::PositionOp::cta_count:
      return kernel.ctas;
    case ir::PositionOp::cluster_rank:
      return cta % kernel.cluster;
    case ir::PositionOp::warp_index:
      return warp % 4;
    case ir::PositionOp::rank:  // known since the kernel was prepared
    case ir::PositionOp::epoch:
      break;
  }
  return 0;
}

}  // namespace

Cta::Cta(const PreparedKernel& kernel, std::int64_t index, Cluster* cluster)
    : index(index),
      cluster(cluster),
      size(kernel.cluster),
      shared(kernel.shared_bytes),
      shadow(kernel.shared_bytes),
      barriers(kernel.barriers),
      live(kernel.warps),
      warps(kernel.warps),
      issues((kernel.warps + 3) / 4) {
  for (int w = 0; w < kernel.warps; ++w) {
    Warp& warp = warps[w];
    warp.cta = this;
    warp.index = w;
    warp.registers = kernel.launch_registers;
    warp.scalars = kernel.scalars;
    warp.arrays.resize(kernel.registers.size());
    for (const auto& [slot, which] : kernel.positions) {
      const std::int64_t value = position(kernel, index, w, which);
      warp.scalars[slot] = {value, static_cast<double>(value)};
    }
  }
}

namespace {

// Results in tensor memory have no origins.
void require_results_in_registers(const PreparedKernel& kernel) {
  ir::for_each(kernel.source->body, [&](const ir::Operation& operation) {
    if (ir::info(operation.op).family != ir::Family::tensor_product) return;
    Diagnostic(
        operation.where,
        fmt::format("kernel {}: --provenance follows products whose results lie in registers, "
                    "and {} leaves its own in tensor memory",
                    kernel.name, ir::info(operation.op).name))
        .fix("leave it out: a product of the wrong part shows in values")
        .raise();
  });
}

}  // namespace

Launch::Launch(World& world, const PreparedKernel& kernel, const Arguments& arguments,
               const MachineOptions& options, LaunchPlace place)
    : world(world),
      kernel(kernel),
      arguments(arguments),
      place(std::move(place)),
      report(world.report),
      log(world.log),
      random(world.random),
      recorder(world.recorder),
      order(*this, options),
      timing(*this, options.timing && options.check_order),
      max_operations_(options.max_operations),
      takes_(options.takes),
      on_one_(options.timekeeper ? 1 : target::resident_ctas(*kernel.source)),
      taken_columns_(static_cast<std::size_t>(kernel.cluster)),
      to_start_(kernel.ctas / kernel.cluster, random, /*shuffled=*/options.timekeeper == nullptr) {
  if (!options.provenance) return;
  require_results_in_registers(kernel);
  provenance.emplace(*this);
}

void Launch::raise_too_long() const {
  Diagnostic(kernel.where,
             fmt::format("kernel {}: warps have executed {} operations, and the end is not reached",
                         kernel.name, max_operations_),
             ErrorKind::result)
      .fix("take smaller sizes, or raise --max-operations (CompileOptions::max_operations)")
      .raise();
}

void Launch::count_instructions() const {
  for (std::size_t op = 0; op < executed_.size(); ++op) {
    if (executed_[op] == 0) continue;
    report.instructions[std::string(ir::info(static_cast<ir::Op>(op)).name)] += executed_[op];
  }
}

void Launch::start_next() {
  const std::int64_t index = to_start_.draw();
  auto cluster = std::make_unique<Cluster>();
  cluster->launch = this;
  cluster->number = world.add_actor({this, nullptr, place.stream, place.position, place.rank});
  cluster->handed = order.nothing();
  for (std::int64_t rank = 0; rank < kernel.cluster; ++rank) {
    cluster->ctas.push_back(
        std::make_unique<Cta>(kernel, index * kernel.cluster + rank, cluster.get()));
    Cta& cta = *cluster->ctas.back();
    if (!kernel.tensor_memories.empty()) {
      cta.tensor = std::make_unique<TensorMemory>(place_in_tensor_memory(rank), cta.index);
    }
    cta.left = order.nothing();
    for (Mbarrier& barrier : cta.barriers)
      barrier.completed = barrier.accumulated = order.nothing();
    for (NamedBarrier& barrier : cta.named) barrier.handed = order.nothing();
    for (Warp& warp : cta.warps) {
      order.start(warp);
      world.add_runnable(warp);
    }
    cluster->live += kernel.warps;
  }
  clusters_.push_back(std::move(cluster));
}

// A CTA joins others where it may: then it may have to wait for their columns.
std::shared_ptr<TakenColumns> Launch::place_in_tensor_memory(std::int64_t rank) {
  std::vector<std::weak_ptr<TakenColumns>>& all = taken_columns_[static_cast<std::size_t>(rank)];
  std::erase_if(all, [](const auto& each) { return each.expired(); });
  for (const auto& each : all) {
    if (each.use_count() < on_one_) return each.lock();
  }
  const auto own = std::make_shared<TakenColumns>();
  all.push_back(own);
  return own;
}

std::int64_t Launch::live_ctas() const {
  return static_cast<std::int64_t>(clusters_.size()) * kernel.cluster;
}

std::int64_t Launch::waiting_ctas() const { return to_start_.count() * kernel.cluster; }

void Launch::retire() {
  clusters_.erase(std::remove_if(clusters_.begin(), clusters_.end(),
                                 [](const auto& cluster) { return cluster->live == 0; }),
                  clusters_.end());
  ended_ = 0;
}

void Launch::add_event(Event event) {
  ++under_way_;
  world.add_event(std::move(event));
}

void Launch::happen(std::size_t index) {
  Event event = std::move(world.events[index]);
  if (event.kind == Event::Kind::store && event.store->stage == Store::Stage::issued) {
    // Reading the source and writing the tensor are two instants.
    world.put_back(index, event);
    return advance_store(*this, *event.issuer, *event.store, Store::Stage::read);
  }
  world.events[index] = std::move(world.events.back());
  world.events.pop_back();
  --under_way_;
  switch (event.kind) {
    case Event::Kind::load:
      return finish_load(*this, event);
    case Event::Kind::store:
      return advance_store(*this, *event.issuer, *event.store, Store::Stage::written);
    case Event::Kind::products:
      return run_products(*this, *event.issuer, event.sequence);
    case Event::Kind::tensor_work:
      return run_tensor_work(*this, *event.issuer, event.sequence);
    case Event::Kind::answer:
      return answer_cancel(*this, event);
    case Event::Kind::stream:
      break;
  }
}

std::int64_t Launch::take_over(Cluster& cluster) {
  // Hardware may also say that there is none where there are some.
  constexpr std::uint64_t kOneOf = 8;
  const auto live = std::count_if(clusters_.begin(), clusters_.end(),
                                  [](const auto& each) { return each->live > 0; });
  if (!takes_ || live > 1) timing.take_over();
  if (to_start_.count() == 0) return -1;
  if (takes_ ? cluster.taken == *takes_ : random.below(kOneOf) == 0) return -1;
  report.taken = std::max(report.taken, ++cluster.taken);
  return to_start_.draw() * kernel.cluster;
}

void Launch::block(Warp& warp, Warp::State state, const Instruction& instruction) {
  warp.state = state;
  warp.waits_at = &instruction;
  world.remove_runnable(warp);
}

void Launch::wait_for_word(Warp& warp, const Instruction& instruction, WordWait wait) {
  warp.word = wait;
  world.add_waiter(warp);
  block(warp, Warp::State::word, instruction);
}

void Launch::wait_for_columns(Warp& warp, const Instruction& instruction) {
  --warp.pc;
  block(warp, Warp::State::columns, instruction);
  wait_for_columns_.push_back(&warp);
}

void Launch::look_for_columns() {
  for (Warp* warp : std::exchange(wait_for_columns_, {})) wake(*warp);
}

void Launch::wake(Warp& warp) {
  warp.state = Warp::State::runnable;
  world.add_runnable(warp);
}

void Launch::run_warp(Warp& warp) {
  const std::uint64_t turn = world.schedule.turn();
  for (std::uint64_t i = 0; i < turn && warp.state == Warp::State::runnable; ++i) {
    const Instruction& instruction = kernel.code[warp.pc];
    if (instruction.once && warp.index != 0) {
      ++warp.pc;
      continue;
    }
    if (recorder) recorder->starts(warp, instruction);
    execute(warp, instruction);
    if (recorder) recorder->executed(warp, instruction);
    // A wait that looks again does so in a later turn.
    if (looks_again(warp, instruction)) return;
    if (world.schedule.until_seen() && is_seen(instruction)) return;
    if (world.schedule.stays_before(kernel.code[warp.pc])) return;
  }
}

void Launch::finish(Warp& warp) {
  for (const auto& store : warp.stores) {
    if (store->freed) continue;
    log.add({"bulk", store->instruction->where(), kernel.roles[warp.role].where,
             fmt::format("bulk: a store still reads shared memory when its warp ends\n{}",
                         access("read", *store->instruction, warp)),
             store->group < 0 ? "bulk_commit and bulk_wait_read(0) after it"
                              : "bulk_wait_read(0) before the kernel ends"});
  }
  if (!warp.products.empty()) {
    const Instruction& product = *warp.products.front().instruction;
    log.add({"wgmma", product.where(), kernel.roles[warp.role].where,
             fmt::format("wgmma: a product is in flight when its warp ends\n{}",
                         access("issue", product, warp)),
             "wait or retire of it before the kernel ends"});
  }
  if (warp.uncommitted) {
    log.add({"tcgen05", warp.uncommitted->where(), kernel.roles[warp.role].where,
             fmt::format("tcgen05: a product may be in flight when its warp ends\n{}",
                         access("issue", *warp.uncommitted, warp)),
             "tcgen05_commit behind it, and a wait for that before the kernel ends "
             "(Barrier::commit, or "
             "Ring::release_behind_products)"});
  }
  warp.state = Warp::State::ended;
  world.remove_runnable(warp);
  if (--warp.cta->cluster->live == 0) ++ended_;
  Cta& cta = *warp.cta;
  cta.left.join(warp.lanes);
  cta.left.join(warp.elected);
  if (--cta.live > 0) return;
  if (cta.left.beyond) left_.join_beyond(cta.left.beyond);
  for (Warp& each : cta.warps) {
    check_issues(*this, each);
    // What is committed is over before the CTA is gone.
    run_tensor_work(*this, each, each.tensor_sequence);
  }
  timing.end(cta);
  check_exit(cta);
  check_tensor_memory(*this, cta);
}

void Launch::check_exit(const Cta& cta) {
  if (!order.enabled()) return;
  for (const ForeignUse& use : cta.foreign_uses) {
    const bool waited = use.barrier >= 0 && cta.left.generic[use.barrier] >= use.phase;
    if (waited || (use.by_access && cta.left.generic[use.access.agent] >= use.access.epoch)) {
      continue;
    }
    log.add({"exit", use.access.instruction->where(), kernel.where,
             fmt::format("exit: CTA {} may end before its shared memory is no longer used\n{}",
                         cta.index, access_line(use.verb, use.access)),
             use.barrier < 0 || use.by_access
                 ? "cluster_sync before the kernel ends"
                 : fmt::format("a wait for {} phase {} before the kernel ends",
                               barrier_name(order.agents().index(use.barrier)), use.phase - 1)});
  }
}

void Launch::execute(Warp& warp, const Instruction& instruction) {
  const auto next = [&](auto&& effect) {
    effect(*this, warp, instruction);
    ++warp.pc;
  };
  std::vector<Scalar>& scalars = warp.scalars;
  if (++report.operations > max_operations_) raise_too_long();
  if (!is_flow(instruction.code)) ++executed_[static_cast<std::size_t>(instruction.op)];
  switch (instruction.code) {
    case Code::end:
      return finish(warp);
    case Code::move: {
      const auto& moves = kernel.moves[instruction.detail];
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
      if (scalars[instruction.b].i <= 0) {  // the kernel would not end
        Diagnostic(instruction.where(),
                   fmt::format("a loop's step is {}", scalars[instruction.b].i))
            .fix("use a step of at least 1")
            .raise();
      }
      scalars[instruction.a].i += scalars[instruction.b].i;
      warp.pc = instruction.target;
      return;
    case Code::branch_unless:
      warp.pc = scalars[instruction.a].i ? warp.pc + 1 : instruction.target;
      return;
    case Code::parted:
      log.add({"divergence", instruction.where(), kernel.roles[warp.role].where,
               fmt::format("divergence: one lane executes what all lanes of a warp execute together"
                           "\n{}",
                           access("issue", instruction, warp)),
               "the instruction outside of elect"});
      ++warp.pc;
      return;
    case Code::enter_role: {
      const Role& role = kernel.roles[instruction.object];
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
    case Code::function:
      return next(execute_scalar);
    case Code::array:
      return next(declare_registers);
    case Code::computation:
      return next(execute_registers);
    case Code::global_access:
      return next(access_global);
    case Code::matrix_access:
      return next(move_matrix);
    case Code::element_access:
      return next(access_elements);
    case Code::fragment_access:
      return next(move_words);
    case Code::shared_word:
      return next(shared_scalar);
    case Code::word:
      return next(access_word);
    case Code::lane_order:
      order.meet(warp);
      ++warp.pc;
      return;
    case Code::check:
      check_numbers(warp, instruction);
      ++warp.pc;
      return;
    case Code::fence:
      return next(execute_fence);
    case Code::bulk_copy:
      return next(issue_copy);
    case Code::product:
      return next(issue_product);
    case Code::product_fence:
      ++warp.wgmma_fences;
      ++warp.pc;
      return;
    case Code::launch_control:
      return next(control_launch);
    case Code::tensor_access:
      return next(access_tensor_memory);
    case Code::tensor_wait:
      return next(wait_for_tensor_memory);
    case Code::tensor_product:
      return next(issue_tensor_product);
    case Code::tensor_copy:
      return next(issue_tensor_copy);
    case Code::tensor_commit:
      return next(commit_tensor_products);
    case Code::tensor_fence:
      return next(fence_tensor_memory);
    case Code::commit:
      return next(commit_group);
    case Code::group_wait:
      return next(wait_for_groups);
    // These step on by themselves, since the warp may block.
    case Code::mbarrier:
      return execute_mbarrier(*this, warp, instruction);
    case Code::word_wait:
      return wait_flag(*this, warp, instruction);
    case Code::named_barrier:
    case Code::cta_barrier:
      return named_barrier(*this, warp, instruction);
    case Code::cluster_barrier:
      return cluster_sync(*this, warp, instruction);
    case Code::tensor_allocation:
      return allocate_tensor_memory(*this, warp, instruction);
    case Code::register_budget:
      return set_max_registers(*this, warp, instruction);
  }
}

std::string Launch::describe(const Warp& warp) const {
  return describe(warp.role, warp.index, warp.cta->index);
}

std::string Launch::describe(int role_number, int warp, std::int64_t cta) const {
  const Role& role = kernel.roles[role_number];
  std::string text = fmt::format("{} warp {}", role.name, warp - role.first_warp);
  if (kernel.ctas > 1) text += fmt::format(" of CTA {}", cta);
  return text + place.label;
}

const BarrierArray& Launch::barrier_array(int barrier) const {
  return *std::find_if(
      kernel.barrier_arrays.begin(), kernel.barrier_arrays.end(),
      [&](const BarrierArray& array) { return barrier < array.first + array.count; });
}

std::string Launch::barrier_name(int barrier) const {
  const BarrierArray& array = barrier_array(barrier);
  return fmt::format("{}[{}]", array.name, barrier - array.first);
}

std::string Launch::access(std::string verb, const Instruction& instruction,
                           const Warp& warp) const {
  return access_line(std::move(verb), order.by_threads(warp, instruction, {}));
}

std::string Launch::access_line(std::string verb, const Access& access) const {
  const Instruction& instruction = *access.instruction;
  std::string name(ir::info(instruction.operation->op).name);
  verb.resize(std::max<std::size_t>(verb.size(), 6), ' ');
  name.resize(std::max<std::size_t>(name.size(), 16), ' ');
  std::string text = fmt::format("  {} {} {}  {}", verb, name, format_location(instruction.where()),
                                 describe(access.role, access.warp, access.cta));
  if (access.iteration >= 0) text += fmt::format(", iteration {}", access.iteration);
  return text + place.launched;
}

std::int32_t Launch::iteration(const Warp& warp, const Instruction& instruction) const {
  if (instruction.loop == ir::kNoValue) return -1;
  return static_cast<std::int32_t>(warp.integer(instruction.loop));
}

bool Launch::fits(const Warp& warp, const Instruction& instruction, const TensorArgument& tensor,
                  const analysis::AxisCheck& check, std::int64_t start, std::int64_t limit) {
  const std::string fault =
      analysis::describe_fault(check, start, limit, tensor.shape[check.axis], tensor.name);
  if (fault.empty()) return true;
  const bool writes = ir::info(instruction.op).writes(ir::Memory::global);
  std::string source;
  if (check.source != ir::kNoValue) {
    source = analysis::fill(analysis::source_message(), {warp.integer(check.source)});
  }
  log.add({"out_of_bounds",
           instruction.where(),
           {},
           fmt::format("out of bounds: {}{}\n{}", fault, source,
                       access(writes ? "write" : "read", instruction, warp)),
           "a condition (when) that leaves it out"});
  return false;
}

void Launch::check_numbers(const Warp& warp, const Instruction& instruction) {
  if (warp.integer(instruction.a) != 0) return;
  const std::vector<ir::ValueId>& operands = instruction.operation->operands;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 1; i < operands.size(); ++i) numbers.push_back(warp.integer(operands[i]));
  log.add({"check",
           instruction.where(),
           {},
           fmt::format(
               "out of bounds: {}\n{}",
               analysis::fill(instruction.operation->attributes.text(ir::Key::message), numbers),
               access("check", instruction, warp)),
           "a condition (when) that leaves it out"});
  // As the trap on a GPU, which ends all threads.
  throw Stopped{};
}

bool Launch::inside(const Warp& warp, const Instruction& instruction, int allocation,
                    std::int64_t address, std::int64_t bytes) {
  const Allocation& place = kernel.allocations[allocation];
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

bool Launch::aligned(const Warp& warp, const Instruction& instruction, int allocation,
                     std::int64_t address, std::int64_t bytes) {
  if (address % bytes == 0) return true;
  const Allocation& place = kernel.allocations[allocation];
  log.add({"misaligned",
           instruction.where(),
           place.where,
           fmt::format("misaligned: shared {}, in accesses of {} bytes\n{}",
                       place.describe(address, bytes), bytes, access("use", instruction, warp)),
           {}});
  return false;
}

void Launch::check_held(const Warp& warp, const Instruction& instruction, const Cta& cta,
                        int allocation, std::int64_t address, std::int64_t bytes) {
  if (cta.shared.initialised(address, bytes)) return;
  const Allocation& place = kernel.allocations[allocation];
  // A copy that has not written them yet, though the phase that announces it may be complete.
  for (const Event& event : world.events) {
    if (event.kind != Event::Kind::load || event.destination != &cta) continue;
    const std::int64_t end = event.address + kernel.transfers[event.instruction->detail].bytes;
    if (address >= end || event.address >= address + bytes) continue;
    const std::string barrier = barrier_name(event.barrier);
    log.add({"race", event.instruction->where(), instruction.where(),
             fmt::format("race: shared {}\n{}\n{}", place.describe(address, bytes),
                         access("write", *event.instruction, *event.issuer),
                         access("read", instruction, warp)),
             event.signalled->barriers[event.barrier].phase > event.phase
                 ? fmt::format("an expect_tx of all bytes that are copied onto {}: phase {} was "
                               "complete before this copy",
                               barrier, event.phase)
                 : fmt::format("a wait for {} phase {} between them", barrier, event.phase)});
    return;
  }
  log.add({"uninitialised", instruction.where(), place.where,
           fmt::format("uninitialised: shared {} has not been written\n{}",
                       place.describe(address, bytes), access("read", instruction, warp)),
           "a write of all that is read, and a barrier between the two"});
}

}  // namespace tilewright::simulator

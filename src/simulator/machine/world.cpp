#include "simulator/machine/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "ir/memory_order.h"
#include "simulator/machine/timekeeper.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::simulator {

namespace {

// Whether a multiprocessor full of the kernel's CTAs has place for a driver's copy within its GPU:
// with so many threads and registers left they began (docs/log/2026-11-28-copies-within-a-gpu.md).
bool leaves_copies_place(const ir::Kernel& kernel) {
  constexpr std::int64_t kThreads = 256, kRegisters = 32 * kThreads;
  const TargetLimits& limits = target::target_of(kernel).limits;
  const std::int64_t threads = std::max(kernel.threads, limits.lanes);
  const std::int64_t registers = std::min<std::int64_t>(
      limits.thread_registers, launch_registers(limits, kernel.resident * threads));
  const std::int64_t taken = target::resident_ctas(kernel) * threads;
  return taken + kThreads <= limits.multiprocessor_threads &&
         taken * registers + kRegisters <= limits.registers;
}

// The first launch has the seed itself. A schedule with delays is a number that launches share.
std::uint64_t seed_of(const MachineOptions& options) {
  const std::uint64_t seed = options.search == Search::random ? options.seed : 0;
  return options.launch == 0 ? seed : Random(seed ^ options.launch << 32).next();
}

}  // namespace

World::World(const MachineOptions& options, MachineReport& report)
    : report(report),
      log(report, options.stop_at_first),
      random(seed_of(options)),
      recorder(options.recorder),
      schedule(options.timekeeper ? Search::time : options.search,
               options.search == Search::random ? seed_of(options) : options.seed),
      options_(options) {}

Launch& World::launch(const PreparedKernel& kernel, const Arguments& arguments, LaunchPlace place) {
  launches_.push_back(
      std::make_unique<Launch>(*this, kernel, arguments, options_, std::move(place)));
  active_.push_back(launches_.back().get());
  if (recorder) recorder->begin(*active_.back());
  return *active_.back();
}

std::uint32_t World::add_actor(Actor actor) {
  actors_.push_back(actor);
  return static_cast<std::uint32_t>(actors_.size() - 1);
}

bool World::is_known(const Beyond* beyond, const Access& earlier) const {
  if (!beyond) return false;
  const Actor& actor = actors_[earlier.cluster];
  if (beyond->streams[actor.stream] > actor.position) return true;
  const Beyond::Cluster* cluster = beyond->find(earlier.cluster);
  return cluster && cluster->known[earlier.agent] >= earlier.epoch;
}

void World::note_read(const Access& access, const Access& earlier) {
  if (!options_.timing || !earlier.write || (access.write && !access.atomic)) return;
  const StreamOperation* operation = actors_[earlier.cluster].operation;
  if (!operation || operation->source->kind != ir::ProgramOperation::Kind::zero) return;
  const ir::ProgramPart& zeros = operation->source->to;
  report.zeros_read.insert({zeros.buffer, zeros.rank});
}

bool World::is_fenced(const Beyond* beyond, const Access& earlier) const {
  if (!beyond) return false;
  const Actor& actor = actors_[earlier.cluster];
  if (beyond->fenced_streams[actor.stream] > actor.position) return true;
  const Beyond::Cluster* cluster = beyond->find(earlier.cluster);
  return cluster && cluster->fenced[earlier.agent] >= earlier.epoch;
}

std::string World::missing_between(const Access& earlier, const Access& access) const {
  if (actors_[earlier.cluster].rank == actors_[access.cluster].rank) {
    return "one stream for both, or an event that is recorded behind the first and waited for "
           "before the second";
  }
  // Who reads before a write of the same run may have come too early for it.
  const auto run_of = [](const Actor& actor) {
    return actor.operation ? actor.operation->run : actor.launch->place.run;
  };
  const bool too_early = !earlier.write && access.write &&
                         run_of(actors_[earlier.cluster]) == run_of(actors_[access.cluster]);
  const std::string other =
      too_early ? "where the read is to find what the write leaves, a signal of scope system "
                  "behind the write, and a wait for it before the read; else "
                : "";
  return other + "a signal of scope system behind the first, and a wait for it before the second";
}

std::string World::why_missed(const Handed& missed, Access reader) const {
  const Access& by = missed.by;
  const std::string place = format_location(by.instruction->where());
  if (!missed.released) {
    return fmt::format("release instead of relaxed at {}, or a fence before it", place);
  }
  if (!includes(by.scope, by, reader)) {
    return fmt::format("a wider scope than {} at {}: it does not have the threads that wait",
                       ir::name_of(by.scope), place);
  }
  return "acquire instead of relaxed where the second waits, of a scope that has the first's "
         "threads, or such a fence behind the wait";
}

std::string World::access_line(const Access& access) const {
  const Actor& actor = actors_[access.cluster];
  if (!actor.launch) return streams->access_line(access, *actor.operation);
  return actor.launch->access_line(access.write ? "write" : "read", access);
}

void World::add_stream_event(int stream) {
  Event event;
  event.kind = Event::Kind::stream;
  event.stream = stream;
  add_event(std::move(event));
}

namespace {

// What comes first of a heap of events is at its front.
bool is_later(const Event& a, const Event& b) {
  return std::tie(a.time, a.rank) > std::tie(b.time, b.rank);
}

}  // namespace

void World::add_event(Event event) {
  if (Timekeeper* const keeper = options_.timekeeper) {
    event.time = keeper->time_of(event);
    event.rank = ++queued_;
  }
  events.push_back(std::move(event));
  if (options_.timekeeper) std::push_heap(events.begin(), events.end(), is_later);
}

void World::put_back(std::size_t index, const Event& event) {
  if (!options_.timekeeper) {
    events[index] = event;
    return;
  }
  events.pop_back();  // where first_in_time has put it
  add_event(event);
}

void World::add_runnable(Warp& warp) {
  if (!options_.timekeeper) return runnable.push_back(&warp);
  if (std::exchange(warp.queued, true)) return;
  queue_.push({options_.timekeeper->time_of(warp), ++queued_, &warp});
}

void World::remove_runnable(Warp& warp) {
  if (options_.timekeeper) return;  // who is executed is not queued
  runnable.erase(std::find(runnable.begin(), runnable.end(), &warp));
}

Schedule::Choice World::first_in_time() {
  const bool event =
      queue_.empty() || (!events.empty() && events.front().time <= queue_.top().time);
  if (event) {
    std::pop_heap(events.begin(), events.end(), is_later);
    return {true, events.size() - 1};
  }
  runnable.assign(1, queue_.top().warp);
  queue_.pop();
  runnable.front()->queued = false;
  return {false, 0};
}

void World::changed(const std::byte* first, std::int64_t bytes) {
  if (recorder) recorder->changed(first, bytes);
  std::vector<Warp*> woken;
  auto entry = word_waiters_.lower_bound(first);
  while (entry != word_waiters_.end() && entry->first < first + bytes) {
    woken.insert(woken.end(), entry->second.begin(), entry->second.end());
    entry = word_waiters_.erase(entry);
  }
  for (Warp* warp : woken) warp->cta->cluster->launch->wake(*warp);
  if (streams) streams->look_again();
}

std::string World::missing_value(const WordWait& wait) const {
  const std::vector<Handed>& writers = memory.handed(wait.word);
  if (writers.empty()) return "a write of the word: there is none";
  return fmt::format("a write of the word that suffices: the last one is\n{}",
                     access_line(writers.back().by));
}

bool World::holds(const WordWait& wait) const {
  std::int32_t value = 0;
  std::memcpy(&value, wait.word, sizeof(value));
  return ir::holds(wait.compare, value, wait.value);
}

std::string World::wait_text(const WordWait& wait) const {
  std::int32_t value = 0;
  std::memcpy(&value, wait.word, sizeof(value));
  const std::string name = memory.describe(wait.word, sizeof(value));
  return fmt::format("{} {} {}, which is {}", name.empty() ? "a word of global memory" : name,
                     ir::sign_of(wait.compare), wait.value, value);
}

void World::count() const {
  report.choices = schedule.choices();
  report.stood = schedule.stood();
  for (const auto& launch : launches_) launch->count_instructions();
}

bool World::fills_gpu(const PreparedKernel& kernel) const {
  if (kernel.cooperative) return true;
  // One that runs alone takes all tiles of a counter, and leaves the others nothing to do.
  const bool is_random = options_.search == Search::random && options_.timekeeper == nullptr;
  return kernel.changes_words && options_.counting_fills_gpu && is_random &&
         (options_.seed + options_.launch) % 2 == 1;
}

bool World::has_place(const Launch& launch) const {
  // Whole clusters, and one of them however few places there are.
  const std::int64_t size = launch.kernel.cluster;
  std::int64_t resident = options_.resident;
  if (fills_gpu(launch.kernel)) {
    const std::int64_t of_one = target::resident_ctas(*launch.kernel.source);
    resident = std::max(resident, of_one * options_.multiprocessors);
  }
  const std::int64_t places = std::max<std::int64_t>((resident + size - 1) / size, 1) * size;
  std::int64_t taken = 0;
  for (const Launch* other : active_) {
    if (other->place.rank != launch.place.rank) continue;
    taken += other->live_ctas();
    // A cooperative launch begins when there is place for all of it, and keeps that.
    const bool began = other != &launch && other->live_ctas() > 0;
    if (began && other->kernel.cooperative) taken += other->waiting_ctas();
  }
  const std::int64_t needed =
      launch.kernel.cooperative ? std::min(launch.waiting_ctas(), places) : size;
  return taken + needed <= places;
}

const Launch* World::holder(int rank) const {
  const Launch* first = nullptr;
  std::int64_t held = 0;
  for (const Launch* launch : active_) {
    if (launch->place.rank != rank || launch->live_ctas() == 0) continue;
    const ir::Kernel& kernel = *launch->kernel.source;
    if (leaves_copies_place(kernel)) continue;
    held += (launch->live_ctas() + launch->waiting_ctas()) / target::resident_ctas(kernel);
    if (first == nullptr) first = launch;
  }
  return held < options_.multiprocessors ? nullptr : first;
}

void World::settle() {
  bool some_ended = false;
  for (Launch* launch : active_) {
    if (!launch->can_retire()) continue;
    launch->retire();
    some_ended = true;
  }
  std::vector<Launch*> waiting;
  while (true) {
    waiting.clear();
    for (Launch* launch : active_) {
      if (!launch->all_started() && has_place(*launch)) waiting.push_back(launch);
    }
    if (waiting.empty()) break;
    waiting[waiting.size() == 1 ? 0 : random.below(waiting.size())]->start_next();
  }
  std::vector<Launch*> ended(
      std::stable_partition(active_.begin(), active_.end(),
                            [](const Launch* launch) { return !launch->is_over(); }),
      active_.end());
  active_.resize(active_.size() - ended.size());
  for (Launch* launch : ended) {
    launch->timing.end();
    if (streams) streams->launch_over(*launch);
  }
  if (streams && some_ended) streams->look_again();
}

void World::run() {
  while (true) {
    settle();
    if (active_.empty() && events.empty() && (!streams || streams->done())) return;
    do {
      if (nothing_can_go_on()) {
        log.add(deadlock(*this));
        return;
      }
      step();
    } while (!is_due_);
  }
}

void World::step() {
  const bool by_time = options_.timekeeper != nullptr;
  const Schedule::Choice choice = by_time ? first_in_time() : schedule.next(runnable, events);
  if (choice.event && events[choice.index].kind == Event::Kind::stream) {
    const int stream = events[choice.index].stream;
    events[choice.index] = std::move(events.back());
    events.pop_back();
    streams->happen(stream);
    is_due_ = true;
    return;
  }
  Warp& warp = choice.event ? *events[choice.index].issuer : *runnable[choice.index];
  Launch& launch = *warp.cta->cluster->launch;
  if (choice.event) {
    launch.happen(choice.index);
  } else {
    launch.run_warp(warp);
    if (by_time) {
      runnable.clear();
      if (warp.state == Warp::State::runnable) add_runnable(warp);
    }
  }
  is_due_ = launch.can_retire();
}

}  // namespace tilewright::simulator

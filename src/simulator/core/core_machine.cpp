#include "simulator/core/core_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "simulator/core/core_global.h"
#include "simulator/core/core_stream.h"
#include "simulator/machine/recorder.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;
using target::Core;
using target::CoreUnit;

// A set of an event that nobody has waited for yet.
struct Raised {
  CoreClock known;
  std::int64_t time = 0;
  const ir::Operation* operation = nullptr;
};
struct Channel {
  std::deque<Raised> raised;
  std::int64_t sets = 0;
  std::vector<std::int64_t> waits;  // their numbers in the queue of the waiting unit
  const ir::Operation* last_set = nullptr;
};

struct Started {
  const CoreItem* item = nullptr;
  std::int64_t number = 0;
};
// A set in the queue: what was started before it has to be over.
struct PendingSet {
  const CoreItem* item = nullptr;
  std::int64_t number = 0;
  CoreClock known;
  std::int64_t time = 0;
};

struct Queue {
  int number = 0;
  int unit = 0;
  std::int64_t instance = 0;
  std::deque<const CoreItem*> waiting;  // issued, not started
  std::deque<std::int64_t> issue_times;
  std::vector<Started> under_way;
  std::deque<PendingSet> sets;
  std::int64_t taken = 0;  // items that have left `waiting`
  CoreClock known;
  // Modelled time.
  std::int64_t free_from = 0, all_over = 0;
  std::vector<std::int64_t> begun;  // of every item
};

struct Issuer {
  int sequencer = 0;  // in the record
  std::int64_t instance = 0;
  std::vector<CoreItem> items;
  std::size_t next = 0;
  std::int64_t time = 0;
};

enum class Mood : std::uint8_t { even, eager, lazy, favourites };

std::size_t queue_count(const Core& core) {
  std::size_t count = 0;
  for (const CoreUnit& unit : core.units) {
    count += static_cast<std::size_t>(core.sequencer(unit.sequencer)->count);
  }
  return count;
}

// One block of the grid.
class BlockRun {
 public:
  BlockRun(const CoreLaunch& launch, CoreGlobal& global, std::int64_t block,
           const MachineOptions& options, Random& random, FaultLog& log, MachineReport& report,
           std::int64_t begins, std::size_t number)
      : launch_(launch),
        core_(launch.core),
        global_(global),
        block_(block),
        options_(options),
        random_(random),
        log_(log),
        report_(report),
        begins_(begins),
        number_(number),
        mood_(static_cast<Mood>(random.below(4))),
        work_(launch, global, block, queue_count(launch.core), log) {
    make_queues();
    const std::int64_t queues = static_cast<std::int64_t>(queues_.size());
    for (Queue& queue : queues_) queue.known.resize(static_cast<std::size_t>(queues), 0);
    weights_.resize(queues_.size() + issuers_.size());
    for (int& weight : weights_) weight = random_.chance(50) ? 1 : 50;
  }

  // The end, in modelled time.
  std::int64_t run() {
    while (step()) {
    }
    if (!is_over()) deadlock();
    check_leftovers();
    std::int64_t end = begins_;
    for (const Queue& queue : queues_) end = std::max({end, queue.free_from, queue.all_over});
    for (const Issuer& issuer : issuers_) end = std::max(end, issuer.time);
    return end;
  }

 private:
  void make_queues() {
    for (std::size_t s = 0; s < core_.sequencers.size(); ++s) {
      const target::CoreSequencer& sequencer = core_.sequencers[s];
      for (std::int64_t instance = 0; instance < sequencer.count; ++instance) {
        queue_of_.emplace_back(core_.units.size(), -1);
        for (std::size_t u = 0; u < core_.units.size(); ++u) {
          if (core_.units[u].sequencer != sequencer.name) continue;
          queue_of_.back()[u] = static_cast<int>(queues_.size());
          Queue queue;
          queue.number = static_cast<int>(queues_.size());
          queue.unit = static_cast<int>(u);
          queue.instance = instance;
          queue.free_from = queue.all_over = begins_;
          queues_.push_back(std::move(queue));
        }
        Issuer issuer;
        issuer.sequencer = static_cast<int>(s);
        issuer.instance = instance;
        issuer.time = begins_;
        for (const ir::Operation& o : launch_.kernel.body.body) {
          if (o.op != Op::role || o.attributes.text(Key::name) != sequencer.name) continue;
          CoreIssued issued =
              issued_by(launch_, o, block_, instance,
                        std::min<std::int64_t>(options_.max_operations, 100'000'000));
          issuer.items = std::move(issued.items);
          global_.order_indices(issued.reads, log_);
        }
        issuers_.push_back(std::move(issuer));
      }
    }
  }

  // The number of an instance of a sequencer among all.
  std::size_t issuer_of(const std::string& sequencer, std::int64_t instance) const {
    for (std::size_t i = 0; i < issuers_.size(); ++i) {
      if (core_.sequencers[issuers_[i].sequencer].name == sequencer &&
          issuers_[i].instance == instance) {
        return i;
      }
    }
    return 0;
  }
  Queue& queue_of(std::size_t unit, std::int64_t instance) {
    return queues_[queue_of_[issuer_of(core_.units[unit].sequencer, instance)][unit]];
  }

  // ---- What may happen next.

  struct Choice {
    enum class Kind : std::uint8_t { issue, take, complete, raise };
    Kind kind;
    std::size_t actor;  // an issuer, or a queue
    std::size_t which = 0;
  };

  bool can_issue(const Issuer& issuer) const {
    if (issuer.next == issuer.items.size()) return false;
    const CoreItem& item = issuer.items[issuer.next];
    const std::size_t at = static_cast<std::size_t>(&issuer - issuers_.data());
    const Queue& queue = queues_[queue_of_[at][item.unit]];
    return static_cast<int>(queue.waiting.size()) < core_.units[item.unit].depth;
  }

  bool can_take(const Queue& queue) {
    if (queue.waiting.empty()) return false;
    const CoreItem& item = *queue.waiting.front();
    switch (item.kind) {
      case CoreItem::Kind::work:
        return !core_.units[queue.unit].orders_itself || queue.under_way.empty();
      case CoreItem::Kind::set:
        return true;
      case CoreItem::Kind::barrier:
        return queue.under_way.empty();
      case CoreItem::Kind::wait:
        break;
    }
    for (const Channel* channel : channels(item, queue.instance, false)) {
      if (channel->raised.empty()) return false;
    }
    return true;
  }

  static bool can_raise(const Queue& queue) {
    if (queue.sets.empty()) return false;
    const std::int64_t set = queue.sets.front().number;
    return std::none_of(queue.under_way.begin(), queue.under_way.end(),
                        [&](const Started& each) { return each.number < set; });
  }

  std::int64_t weight(Choice::Kind kind, std::size_t actor) const {
    switch (mood_) {
      case Mood::even:
        return 1;
      case Mood::eager:
        return kind == Choice::Kind::complete ? 100 : 1;
      case Mood::lazy:
        return kind == Choice::Kind::complete ? 1 : 100;
      case Mood::favourites:
        return weights_[kind == Choice::Kind::issue ? queues_.size() + actor : actor];
    }
    return 1;
  }

  bool step() {
    std::vector<Choice> choices;
    for (std::size_t i = 0; i < issuers_.size(); ++i) {
      if (can_issue(issuers_[i])) choices.push_back({Choice::Kind::issue, i});
    }
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      if (can_take(queues_[i])) choices.push_back({Choice::Kind::take, i});
      if (can_raise(queues_[i])) choices.push_back({Choice::Kind::raise, i});
      for (std::size_t j = 0; j < queues_[i].under_way.size(); ++j) {
        choices.push_back({Choice::Kind::complete, i, j});
      }
    }
    if (choices.empty()) return false;
    if (choices.size() > 1) ++report_.choices;
    std::int64_t sum = 0;
    for (const Choice& each : choices) sum += weight(each.kind, each.actor);
    std::int64_t drawn = random_.below(sum);
    for (const Choice& each : choices) {
      drawn -= weight(each.kind, each.actor);
      if (drawn < 0) {
        happen(each);
        break;
      }
    }
    return true;
  }

  void happen(const Choice& choice) {
    switch (choice.kind) {
      case Choice::Kind::issue:
        return issue(issuers_[choice.actor], choice.actor);
      case Choice::Kind::take:
        return take(queues_[choice.actor]);
      case Choice::Kind::raise:
        return raise(queues_[choice.actor]);
      case Choice::Kind::complete: {
        Queue& queue = queues_[choice.actor];
        const Started started = queue.under_way[choice.which];
        queue.under_way.erase(queue.under_way.begin() + static_cast<std::ptrdiff_t>(choice.which));
        if (!options_.control_only) work_.execute(queue.instance, *started.item);
        return;
      }
    }
  }

  void issue(Issuer& issuer, std::size_t number) {
    const CoreItem& item = issuer.items[issuer.next++];
    Queue& queue = queues_[queue_of_[number][item.unit]];
    // A full queue holds the sequencer up until one more of its items has begun.
    const auto depth = static_cast<std::int64_t>(core_.units[item.unit].depth);
    const std::int64_t before =
        queue.taken + static_cast<std::int64_t>(queue.waiting.size()) - depth;
    if (before >= 0) issuer.time = std::max(issuer.time, queue.begun[before]);
    issuer.time += core_.sequencers[issuer.sequencer].issue;
    queue.waiting.push_back(&item);
    queue.issue_times.push_back(issuer.time);
    ++report_.operations;
    ++report_.instructions[std::string(ir::info(item.operation->op).name)];
  }

  void take(Queue& queue) {
    const CoreItem& item = *queue.waiting.front();
    const std::int64_t issued = queue.issue_times.front();
    queue.waiting.pop_front();
    queue.issue_times.pop_front();
    const std::int64_t number = ++queue.taken;
    std::int64_t at = std::max(queue.free_from, issued);
    switch (item.kind) {
      case CoreItem::Kind::work:
        at = start(queue, item, number, at);
        break;
      case CoreItem::Kind::set:
        queue.sets.push_back({&item, number, queue.known, std::max(at, queue.all_over)});
        break;
      case CoreItem::Kind::barrier:
        queue.known[queue.number] = number;
        at = std::max(at, queue.all_over);
        queue.free_from = at;
        break;
      case CoreItem::Kind::wait:
        at = wait(queue, item, number, at);
        break;
    }
    queue.begun.push_back(at);
  }

  // ---- Events.

  // Those of one instance's unit with all instances of the other that it reaches.
  std::vector<Channel*> channels(const CoreItem& item, std::int64_t instance, bool sets) {
    const target::CoreEventPair& event = core_.events[item.event];
    const std::string& from = core_.unit(event.from)->sequencer;
    const std::string& to = core_.unit(event.to)->sequencer;
    std::vector<Channel*> list;
    const auto add = [&](std::int64_t source, std::int64_t destination) {
      list.push_back(&channels_[{item.event, item.id, source, destination}]);
    };
    if (from == to) {
      add(instance, instance);
      return list;
    }
    const int others = core_.sequencer(sets ? to : from)->count;
    for (int other = 0; other < others; ++other) {
      sets ? add(instance, other) : add(other, instance);
    }
    return list;
  }

  std::string event_text(const CoreItem& item) const {
    const target::CoreEventPair& event = core_.events[item.event];
    return fmt::format("event {} from {} to {}", item.id, event.from, event.to);
  }

  bool is_event(const CoreItem& item) {
    const target::CoreEventPair& event = core_.events[item.event];
    if (item.id >= 0 && item.id < event.ids) return true;
    log_.add({"out_of_bounds",
              item.operation->where,
              {},
              fmt::format("{}: {}, of which there are {}", launch_.kernel.name, event_text(item),
                          event.ids),
              "a number below that"});
    return false;
  }

  void raise(Queue& queue) {
    PendingSet set = std::move(queue.sets.front());
    queue.sets.pop_front();
    set.known[queue.number] = std::max(set.known[queue.number], set.number);
    if (!is_event(*set.item)) return;
    const target::CoreEventPair& event = core_.events[set.item->event];
    const std::size_t to = static_cast<std::size_t>(core_.unit(event.to) - core_.units.data());
    const bool own = core_.unit(event.from)->sequencer == core_.unit(event.to)->sequencer;
    std::int64_t other = own ? queue.instance : 0;
    for (Channel* channel : channels(*set.item, queue.instance, true)) {
      // So many sets before it are taken back only if that wait is known to be over.
      const std::int64_t before = channel->sets - event.most;
      const Queue& waiting = queue_of(to, other++);
      const bool is_down =
          before < 0 || (before < static_cast<std::int64_t>(channel->waits.size()) &&
                         set.known[waiting.number] >= channel->waits[before]);
      if (!is_down) {
        Fault fault;
        fault.kind = "event";
        fault.first = set.item->operation->where;
        if (channel->last_set != nullptr) fault.second = channel->last_set->where;
        fault.message = fmt::format("{}: {} may be set while it is still up ({} at most)",
                                    launch_.kernel.name, event_text(*set.item), event.most);
        fault.missing = fmt::format(
            "what tells {} that {} has waited for the set before: an "
            "event back, or another number in turn",
            event.from, event.to);
        log_.add(std::move(fault));
      }
      ++channel->sets;
      channel->last_set = set.item->operation;
      channel->raised.push_back({set.known, set.time, set.item->operation});
    }
  }

  std::int64_t wait(Queue& queue, const CoreItem& item, std::int64_t number, std::int64_t at) {
    if (!is_event(item)) return at;
    for (Channel* channel : channels(item, queue.instance, false)) {
      const Raised& raised = channel->raised.front();
      for (std::size_t i = 0; i < queue.known.size(); ++i) {
        queue.known[i] = std::max(queue.known[i], raised.known[i]);
      }
      at = std::max(at, raised.time);
      channel->raised.pop_front();
      channel->waits.push_back(number);
    }
    queue.free_from = at;
    return at;
  }

  // ---- Work.

  std::int64_t start(Queue& queue, const CoreItem& item, std::int64_t number, std::int64_t at) {
    if (core_.units[queue.unit].orders_itself) queue.known[queue.number] = number - 1;
    const CoreCycles cycles = work_.cycles_of(item);
    if (core_.units[queue.unit].orders_itself) at = std::max(at, queue.all_over);
    queue.free_from = at + cycles.busy;
    const std::int64_t end = at + cycles.busy + cycles.start;
    queue.all_over = std::max(queue.all_over, end);
    if (options_.recorder != nullptr) {
      options_.recorder->executed(CoreSpan{item.operation,
                                           fmt::format("{} of core {}", queue_text(queue), number_),
                                           block_, at, queue.free_from, end});
    }
    spans_.push_back({queue.unit, at, queue.free_from, cycles});
    if (!work_.is_inside(queue.instance, item)) return at;
    if (options_.check_order) {
      const std::size_t issuer = issuer_of(core_.units[queue.unit].sequencer, queue.instance);
      CoreAgent by;
      by.queue = queue.number;
      by.number = number;
      by.operation = item.operation;
      by.unit = static_cast<std::int16_t>(queue.unit);
      by.issuer = static_cast<std::int8_t>(issuer);
      by.issued = static_cast<std::int32_t>(&item - issuers_[issuer].items.data());
      work_.order(queue.instance, item, by, queue.known);
    }
    queue.under_way.push_back({&item, number});
    return at;
  }

  // ---- The end.

  bool is_over() const {
    return std::all_of(issuers_.begin(), issuers_.end(),
                       [](const Issuer& i) { return i.next == i.items.size(); }) &&
           std::all_of(queues_.begin(), queues_.end(), [](const Queue& q) {
             return q.waiting.empty() && q.under_way.empty() && q.sets.empty();
           });
  }

  std::string queue_text(const Queue& queue) const {
    const CoreUnit& unit = core_.units[queue.unit];
    return core_.sequencer(unit.sequencer)->count > 1
               ? fmt::format("{} {}", unit.name, queue.instance)
               : unit.name;
  }

  [[noreturn]] void deadlock() {
    Fault fault;
    fault.kind = "deadlock";
    fault.message = fmt::format("{}: nothing can go on in block {}", launch_.kernel.name, block_);
    for (const Queue& queue : queues_) {
      if (queue.waiting.empty()) continue;
      const CoreItem& item = *queue.waiting.front();
      std::int64_t sets = 0;
      for (const Channel* channel : channels(item, queue.instance, false)) sets += channel->sets;
      fault.message +=
          fmt::format("\n  {} waits for {}, which is set {} times, at {}", queue_text(queue),
                      event_text(item), sets, format_location(item.operation->where));
      if (fault.first.file == nullptr) fault.first = item.operation->where;
    }
    for (const Issuer& issuer : issuers_) {
      if (issuer.next == issuer.items.size()) continue;
      const CoreItem& item = issuer.items[issuer.next];
      fault.message += fmt::format(
          "\n  {} has no room in the queue of {} at {}", core_.sequencers[issuer.sequencer].name,
          core_.units[item.unit].name, format_location(item.operation->where));
    }
    fault.missing = "a set for each wait, in the queue of a unit that comes to it";
    log_.add(std::move(fault));
    throw Stopped();
  }

  void check_leftovers() {
    for (const auto& [key, channel] : channels_) {
      if (channel.raised.empty()) continue;
      const target::CoreEventPair& event = core_.events[std::get<0>(key)];
      Fault fault;
      fault.kind = "exit";
      fault.first = channel.raised.back().operation->where;
      fault.message = fmt::format(
          "{}: event {} from {} to {} is still up at the end: the next kernel begins with it",
          launch_.kernel.name, std::get<1>(key), event.from, event.to);
      fault.missing = fmt::format("a wait of {} for this set", event.to);
      log_.add(std::move(fault));
    }
  }

 public:
  const std::vector<CoreDevice::Span>& spans() const { return spans_; }

 private:
  const CoreLaunch& launch_;
  const Core& core_;
  CoreGlobal& global_;
  const std::int64_t block_;
  const MachineOptions& options_;
  Random& random_;
  FaultLog& log_;
  MachineReport& report_;
  const std::int64_t begins_;
  const std::size_t number_;  // of the core that takes the block
  const Mood mood_;
  CoreWork work_;
  std::vector<Queue> queues_;
  std::vector<Issuer> issuers_;
  std::vector<std::vector<int>> queue_of_;  // of each issuer, by the unit's number
  // By the event, its number, and the instances of the two sequencers.
  std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>, Channel> channels_;
  std::vector<int> weights_;  // of queues, then of issuers
  std::vector<CoreDevice::Span> spans_;
};

constexpr std::int64_t kParts = 20;  // of the time, in a report

UnitUse use_of(const Core& core, int number, std::size_t cores, std::int64_t cycles,
               const std::vector<CoreDevice::Span>& spans) {
  const CoreUnit& unit = core.units[static_cast<std::size_t>(number)];
  UnitUse use;
  use.name = unit.name;
  use.instances = static_cast<std::int64_t>(cores) * core.sequencer(unit.sequencer)->count;
  use.over_time.resize(kParts);
  for (const CoreDevice::Span& span : spans) {
    if (span.unit != number) continue;
    ++use.instructions;
    use.busy += span.to - span.from;
    use.conflicts += span.cycles.conflicts;
    use.short_moves += span.cycles.is_short;
    for (std::int64_t part = 0; part < kParts; ++part) {
      const std::int64_t from = cycles * part / kParts, to = cycles * (part + 1) / kParts;
      use.over_time[part] +=
          std::max<std::int64_t>(0, std::min(to, span.to) - std::max(from, span.from));
    }
  }
  return use;
}

}  // namespace

// Each block goes to the core that takes it first, a fresh one where there still are.
std::int64_t CoreDevice::launch(const ir::Kernel& kernel, const Arguments& arguments,
                                std::int64_t begins, CoreTouched* touched) {
  const CoreLaunch launch(kernel, arguments, options_.multiprocessors);
  core_ = &launch.core;
  CoreGlobal global(launch, touched);
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, options_.multiprocessors));
  std::int64_t end = begins;
  for (std::int64_t block = 0; block < launch.blocks; ++block) {
    auto core = std::min_element(free_from_.begin(), free_from_.end());
    if ((core == free_from_.end() || *core > begins) && free_from_.size() < most) {
      core = free_from_.insert(free_from_.end(), 0);
    }
    BlockRun run(launch, global, block, options_, random_, log_, report_, std::max(*core, begins),
                 static_cast<std::size_t>(core - free_from_.begin()));
    *core = run.run();
    end = std::max(end, *core);
    spans_.insert(spans_.end(), run.spans().begin(), run.spans().end());
  }
  return end;
}

void CoreDevice::count() const {
  if (core_ == nullptr) return;
  for (const std::int64_t end : free_from_) report_.cycles = std::max(report_.cycles, end);
  for (int unit = 0; unit < static_cast<int>(core_->units.size()); ++unit) {
    report_.units.push_back(use_of(*core_, unit, free_from_.size(), report_.cycles, spans_));
  }
}

// Nothing depends on the seed: the report's `timing` is empty. What a queue has stands in an order
// of its own, and the n-th wait for an event takes its n-th set. So each item starts in every order
// with the same of the others known to be over. Races and events that may be raised while they are
// up follow from that alone. A wait without a set comes to nothing in any order. And what is read
// without a race was written by the same instruction.
void run_core(const ir::Kernel& kernel, const Arguments& arguments, const MachineOptions& options,
              MachineReport& report) {
  check_core_options(kernel, options);
  FaultLog log(report, options.stop_at_first);
  Random random(options.seed * 1000003 + options.launch);
  CoreDevice device(options, random, log, report);
  try {
    device.launch(kernel, arguments, 0);
  } catch (const Stopped&) {
  }
  device.count();
}

void check_core_options(const ir::Kernel& kernel, const MachineOptions& options) {
  if (options.search == Search::random && !options.provenance) return;
  Diagnostic(kernel.where, kernel.name + ": " + kernel.target + " has schedules that a seed draws")
      .fix("leave --search and --provenance out; --schedules says how many are tried")
      .raise();
}

}  // namespace tilewright::simulator

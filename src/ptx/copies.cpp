#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ptx/typed.h"

// Copies of a few bytes by threads, from global to shared memory: cp.async, its groups, and
// mbarriers that follow it.
namespace tilewright::ptx {
namespace {

using Copies = std::vector<std::shared_ptr<ThreadCopy>>;

void bring(const Machine& machine, Cta& cta, ThreadCopy& copy) {
  if (copy.copied) return;
  copy.copied = true;
  std::byte* const to = cta.shared.data() + copy.to;
  if (copy.read > 0) {
    std::memcpy(to, machine.find(copy.from, copy.read), static_cast<std::size_t>(copy.read));
  }
  std::fill_n(to + copy.read, copy.bytes - copy.read, std::byte{0});
  std::fill_n(cta.held.begin() + static_cast<std::ptrdiff_t>(copy.to), copy.bytes, 1);
}

// How many bytes are read: operand 3 is their number, or a predicate of those that read nothing.
std::int64_t bytes_read(Execution& x, int lane, std::int64_t bytes) {
  const bool hint = x.instruction.has(Modifier::cache_hint);
  if (x.instruction.operands.size() < (hint ? 5u : 4u)) return bytes;
  const Operand& operand = x.operand(3);
  const std::uint64_t value = x.read(3)[lane];
  const bool is_predicate = operand.kind == Operand::Kind::reg &&
                            x.machine.kernel.register_types[operand.index] == Type::pred;
  if (is_predicate) return value & 1 ? 0 : bytes;
  const auto count = static_cast<std::int64_t>(value & 0xffffffff);
  if (count > bytes) x.fail("copy", fmt::format("of {} bytes reads {}", bytes, count));
  return count;
}

void copy(Execution& x) {
  const Instruction& i = x.instruction;
  const auto bytes = static_cast<std::int64_t>(x.uniform(2));
  const bool fits = i.has(Modifier::cg) ? bytes == 16 : bytes == 4 || bytes == 8 || bytes == 16;
  if (!fits || !i.has(Modifier::global)) x.unsupported();
  const Lanes targets = x.addresses(x.operand(0)), sources = x.addresses(x.operand(1));
  for_lanes(x.lanes, [&](int lane) {
    const auto made = std::make_shared<ThreadCopy>();
    made->instruction = &i;
    made->lane = lane;
    made->bytes = bytes;
    made->read = bytes_read(x, lane, bytes);
    made->from = sources[lane];
    x.machine.memory(x, Space::shared, targets[lane] & kWindowMask, bytes, lane);
    const auto [cta, at] = x.machine.shared(x, targets[lane] & kWindowMask, bytes);
    if (cta != &x.cta()) x.fail("out_of_bounds", "of another CTA's shared memory");
    made->to = at;
    if (made->from % static_cast<std::uint64_t>(bytes) != 0) {
      x.fail("misaligned", fmt::format("of {} bytes from {:#x}", bytes, made->from));
    }
    if (made->read > 0) {
      if (!x.machine.find(made->from, made->read)) {
        x.fail("out_of_bounds", x.machine.describe_outside(made->from, made->read));
      }
      touch_global(x, {made->from, made->read});
    }
    touch(x, *cta, at, bytes, Accessor::thread_copy);
    if (x.machine.input.timing == Timing::early) {
      bring(x.machine, *cta, *made);
    } else {
      std::fill_n(cta->held.begin() + static_cast<std::ptrdiff_t>(at), bytes, 0);
    }
    x.warp.copies.push_back(made);
  });
}

void commit(Execution& x) {
  for_lanes(x.lanes, [&](int lane) {
    for (const auto& each : x.warp.copies) {
      if (each->lane == lane && each->group < 0) each->group = x.warp.copy_groups[lane];
    }
    ++x.warp.copy_groups[lane];
  });
}

// The copies for which `over` holds are there.
template <typename Over>
void wait_for(Execution& x, const Over& over) {
  for (const auto& each : x.warp.copies) {
    if (!(x.lanes >> each->lane & 1) || !over(*each)) continue;
    bring(x.machine, x.cta(), *each);
    land(x.warp, *each, epoch_of(x.warp));
  }
  std::erase_if(x.warp.copies,
                [&](const auto& each) { return (x.lanes >> each->lane & 1) && over(*each); });
}

void wait_groups(Execution& x) {
  const auto pending = static_cast<std::int64_t>(x.uniform(0));
  wait_for(x, [&](const ThreadCopy& each) {
    return each.group >= 0 && each.group < x.warp.copy_groups[each.lane] - pending;
  });
}

void wait_all(Execution& x) {
  wait_for(x, [](const ThreadCopy&) { return true; });
}

// Arrives once the copies of the thread up to here are there. They may be waited for besides.
void arrive_behind(Execution& x) {
  const bool counted = x.instruction.has(Modifier::noinc);
  for_lanes(x.lanes, [&](int lane) {
    const BarrierPlace place = barrier_place(x, x.operand(0), lane);
    Mbarrier& barrier = barrier_at(x, place);
    if (!counted) ++barrier.pending;
    if (barrier.pending < 1) {
      x.fail("mbarrier", fmt::format("of shared {:#x}, which has got all {} arrivals of phase {}",
                                     place.at + kSharedBase, barrier.expected, barrier.phase));
    }
    Copies followed;
    for (const auto& each : x.warp.copies) {
      if (each->lane == lane) followed.push_back(each);
    }
    Clock known;
    const std::uint32_t epoch = epoch_of(x.warp);
    release(x, known);
    const auto finish = [&machine = x.machine, &warp = x.warp, place, followed, known, epoch] {
      for (const auto& each : followed) {
        bring(machine, *warp.cta, *each);
        const auto same = std::find(warp.copies.begin(), warp.copies.end(), each);
        if (same == warp.copies.end()) continue;  // waited for
        land(warp, *each, epoch);
        warp.copies.erase(same);
      }
      Mbarrier& reached = place.cta->barriers[place.at];
      --reached.pending;
      join(reached.arriving, known);
      complete_if_due(reached);
    };
    if (x.machine.input.timing == Timing::early) return finish();
    x.machine.under_way.push_back({place.cta, &x.instruction, finish});
  });
}

constexpr Record kCopyRecords[] = {
    {"cp.async", "aas?ss",
     "ca cg shared shared::cta global L2::cache_hint L2::64B L2::128B L2::256B", "", copy},
    {"cp.async.commit_group", "", "", "", commit},
    {"cp.async.wait_group", "s", "", "", wait_groups},
    {"cp.async.wait_all", "", "", "", wait_all},
    {"cp.async.mbarrier.arrive", "a", "noinc shared shared::cta", "b64", arrive_behind},
};

}  // namespace

void finish_copies(Machine& machine, Warp& warp) {
  for (const auto& each : warp.copies) bring(machine, *warp.cta, *each);
  warp.copies.clear();
}

std::span<const Record> copy_records() { return kCopyRecords; }

}  // namespace tilewright::ptx

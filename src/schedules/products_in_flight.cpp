#include "schedules/products_in_flight.h"

#include <algorithm>

namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::ValueId;

void ProductsInFlight::issue(const Operation& o) {
  const Source a = placement_.source_of(o.operands[0]);
  const SharedView b = right(placement_.source_of(o.operands[1]), o.results[0]);
  const bool accumulates = o.operands.size() > 2;
  const auto product = [&](const auto& first) {
    return accumulates ? wgmma(first, b, values_.tile(o.operands[2]), o.where)
                       : wgmma(first, b, o.where);
  };
  const bool in_memory = a.load || a.transposed;
  in_flight_.push_back(
      {o.results[0],
       in_memory ? product(left(a, o.results[0])) : product(values_.tile(o.operands[0])),
       in_memory ? ir::kNoValue : o.operands[0],
       {},
       {}});
  for (const Source& source : {a, placement_.source_of(o.operands[1])}) {
    if (source.load) in_flight_.back().reads.push_back(placement_.leader_of(source.value));
  }
}

void ProductsInFlight::release_behind(ValueId load, const Operation& o) {
  const auto reader = std::find_if(in_flight_.rbegin(), in_flight_.rend(), [&](const InFlight& p) {
    return std::find(p.reads.begin(), p.reads.end(), load) != p.reads.end();
  });
  if (reader == in_flight_.rend() || o.op != Op::dot) loads_.release_read(o);
  if (reader == in_flight_.rend()) return loads_.release(load, o);
  reader->releases.push_back(load);
}

void ProductsInFlight::finish_for(const Operation& o) {
  if (in_flight_.empty()) return;
  std::vector<ValueId> read = o.operands;
  if (o.op == Op::dot) read[1] = placement_.source_of(o.operands[1]).value;
  for (const ir::Block& inner : o.blocks) {
    ir::for_each(inner, [&](const Operation& nested) {
      read.insert(read.end(), nested.operands.begin(), nested.operands.end());
    });
  }
  finish_if(
      [&](const InFlight& p) {
        const bool overwritten = std::any_of(o.results.begin(), o.results.end(), [&](ValueId r) {
          const auto at = takes_over_.find(r);
          return at != takes_over_.end() && at->second == p.registers;
        });
        // Another product may read the same registers; nothing else before it has ended.
        const auto first = read.begin() + (o.op == Op::dot ? 1 : 0);
        const bool shared =
            p.registers != ir::kNoValue && std::count(first, read.end(), p.registers);
        return overwritten || shared || std::count(read.begin(), read.end(), p.result) != 0;
      },
      o);
}

void ProductsInFlight::finish_value(ValueId value, const Operation& o) {
  finish_if([&](const InFlight& p) { return p.result == value; }, o);
}

void ProductsInFlight::finish_from(std::size_t count, const Operation& o) {
  std::vector<ValueId> later;
  for (std::size_t i = count; i < in_flight_.size(); ++i) later.push_back(in_flight_[i].result);
  finish_if(
      [&](const InFlight& p) {
        return std::find(later.begin(), later.end(), p.result) != later.end();
      },
      o);
}

void ProductsInFlight::finish_if(const std::function<bool(const InFlight&)>& predicate,
                                 const Operation& o) {
  std::vector<InFlight> rest;
  for (InFlight& p : in_flight_) {
    if (!predicate(p)) {
      rest.push_back(std::move(p));
      continue;
    }
    values_[p.result] = tracer_.use(wait(p.product, o.where).handle(), "dot", o.where);
    for (const ValueId load : p.releases) loads_.release(load, o);
  }
  in_flight_ = std::move(rest);
}

}  // namespace tilewright::schedules

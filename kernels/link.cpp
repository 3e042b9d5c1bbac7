#include "tilewright/kernels/link.h"
#include "tilewright/function_ref.h"

#include <string>
#include <utility>

#include "kernels/caller.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {  // only callers: no entry of the library is made of them
namespace {

constexpr int kTileRows = 64;  // of 32 KB

void check_pair(int ranks, int one, int other, const Caller& caller) {
  const auto is_rank = [&](int rank) { return rank >= 0 && rank < ranks; };
  if (is_rank(one) && is_rank(other) && one != other) return;
  caller.refuse("from rank " + std::to_string(one) + " to rank " + std::to_string(other) + " of " +
                    std::to_string(ranks),
                "two different ranks, of numbers from 0 on");
}

// A kernel that pushes reads its own rank's x and writes the other's y; one that pulls reads the
// other's x and writes its own y. Which rank is the other is known when it runs, so that both
// directions have one build.
struct Ends {
  TensorView source(const Block& of) const { return pulls ? x.at(other)(of, all) : x(of, all); }
  TensorView target(const Block& of) const { return pulls ? y(of, all) : y.at(other)(of, all); }
  Dim rows;
  Tensor x, y;
  Index other;
  bool pulls;
};

// Every CTA, or every warpgroup of them, takes each of its tiles.
void for_each_tile(const Ends& ends, const Index& first, const Index& step,
                   FunctionRef<void(const Block&)> body) {
  for (Index tile : range(first, ceil_div(ends.rows, kTileRows), step)) {
    body(ends.rows.block(tile, kTileRows));
  }
}

class Mover {
 public:
  Mover(const char* name, const LinkCopy& o, bool pulls)
      : kernel_(name),
        both_(o.from + o.to),
        rows_(kernel_.dim("rows")),
        pulls_(pulls),
        x_(kernel_.symmetric("x", f32, {rows_, kLinkColumns})),
        y_(kernel_.symmetric("y", f32, {rows_, kLinkColumns})) {
    kernel_.ctas(multiprocessors());
  }

  // Registers lie between.
  Kernel by_threads() {
    kernel_.roles({role("move", tilewright::warpgroups(2), registers(120), [&](const Index& group) {
      const Ends ends = this->ends();
      for_each_tile(ends, 2 * cta_index() + group, 2 * cta_count(),
                    [&](const Block& rows) { store(ends.target(rows), load(ends.source(rows))); });
    })});
    return std::move(kernel_);
  }

  // Shared memory lies between.
  Kernel by_tma() {
    Ring ring(kernel_, "tiles", stages(6), {{f32, kTileRows, kLinkColumns}});
    const auto load_role = [&] {
      const Ends ends = this->ends();
      for_each_tile(ends, cta_index(), cta_count(), [&](const Block& rows) {
        ring.produce([&](const Slot& slot) { tma_load(ends.source(rows), slot); });
      });
    };
    const auto store_role = [&] {
      const Ends ends = this->ends();
      for_each_tile(ends, cta_index(), cta_count(), [&](const Block& rows) {
        const Slot slot = ring.consume();
        tma_store(ends.target(rows), slot);
        bulk_commit();
        bulk_wait_read(0);
        ring.release(slot);
      });
      bulk_wait(0);
    };
    kernel_.roles({role("load", warps(1), registers(40), load_role),
                   role("store", warps(1), registers(40), store_role)});
    return std::move(kernel_);
  }

 private:
  Ends ends() { return {rows_, x_, y_, both_ - kernel_.rank(), pulls_}; }

  Kernel kernel_;
  int both_;  // the sum of the two ranks
  Dim rows_;
  bool pulls_;
  Tensor x_, y_;
};

bool is_pull(Transfer how) {
  return how == Transfer::engine_pull || how == Transfer::thread_pull || how == Transfer::tma_pull;
}

bool is_by_engine(Transfer how) {
  return how == Transfer::engine_push || how == Transfer::engine_pull;
}

void queue_copy(const Program& program, const LinkCopy& o, int from, int to, const Buffer& x,
                const Buffer& y) {
  const bool pulls = is_pull(o.how);
  const Stream stream = program.rank(pulls ? to : from).stream();
  if (is_by_engine(o.how)) return stream.copy(y.on(to), x.on(from));
  const bool is_tma = o.how == Transfer::tma_push || o.how == Transfer::tma_pull;
  Mover mover(is_tma ? "link_tma" : "link_threads", o, pulls);
  stream.launch(is_tma ? mover.by_tma() : mover.by_threads(), {x, y});
}

// Words count up with the rounds of all runs. Rank `one` begins, `other` answers.
Kernel ping_pong(const LinkSignal& o) {
  Kernel kernel("link_signal");
  const Signals words = kernel.signals("words", 1);
  kernel.ctas(1);
  kernel.roles({role("play", warps(1), registers(40), [&] {
    const Index first = (kernel.epoch() - 1) * o.rounds + 1;
    const Index me = kernel.rank();
    const Index other = o.one + o.other - me;
    for (Index round : range(o.rounds)) {
      when(me == o.one, [&] { signal(words.at(other), 0, first + round); });
      wait_flag(words, 0, Compare::ge, first + round);
      when(me == o.other, [&] { signal(words.at(other), 0, first + round); });
    }
  })});
  return kernel;
}

}  // namespace

Program link_copy(const LinkCopy& o, SourceLocation where) {
  check_pair(o.ranks, o.from, o.to, {"link_copy", where});
  Program program("link_copy", o.ranks, where);
  const Dim rows = program.dim("rows");
  const auto buffer = [&](const char* name) {
    return o.scratch ? program.scratch(name, f32, {rows, kLinkColumns})
                     : program.buffer(name, f32, {rows, kLinkColumns});
  };
  const Buffer x = buffer("x"), y = buffer("y");
  queue_copy(program, o, o.from, o.to, x, y);
  if (o.both_ways) queue_copy(program, o, o.to, o.from, x, y);
  return program;
}

Program link_signal(const LinkSignal& o, SourceLocation where) {
  const Caller caller{"link_signal", where};
  check_pair(o.ranks, o.one, o.other, caller);
  caller.check_positive("rounds", o.rounds);
  Program program("link_signal", o.ranks, where);
  const Buffer words = program.signals("words", 1);
  if (!o.by_streams) {
    const Kernel kernel = ping_pong(o);
    for (const int rank : {o.one, o.other}) program.rank(rank).stream().launch(kernel, {words});
    return program;
  }
  const Stream one = program.rank(o.one).stream(), other = program.rank(o.other).stream();
  for (int round = 1; round <= o.rounds; ++round) {
    const RunNumber turn = (program.run() - 1) * o.rounds + round;
    one.write(words.on(o.other)[0], turn);
    other.wait(words[0], turn);
    other.write(words.on(o.one)[0], turn);
    one.wait(words[0], turn);
  }
  return program;
}

}  // namespace tilewright::kernels

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/attention_backward_heads.h"
#include "kernels/attention_backward_record.h"
#include "kernels/attention_ranks.h"
#include "kernels/heads_exchange_sm90.h"
#include "tilewright/plan_case.h"

// The gradients of attention over ranks, by heads: each rank gets all rows of its own heads, makes
// their gradients as one GPU does, and gives those of the others' rows back. What they take of O
// and LSE, and of the gradient of LSE, are two numbers a row: its owner makes them, and these
// travel. Of packed sequences O, LSE and its gradient travel themselves: kernels read the numbers
// of each sequence from a whole block on.
namespace tilewright::kernels {

bool divides_heads(const SequenceParallelAttention& o) {
  return plan_case("keys' heads are a multiple of the ranks",
                   o.attention.kv_heads % std::max(o.ranks, 1) == 0);
}

namespace {

// How the gradients are made: of the tile level, by the kernels of one GPU's ordered schedule of
// group after group of the heads, or by one kernel of all of them.
enum class Made : std::uint8_t { by_tiles, by_groups, at_once };

// A rank's heads come and go in groups: while the kernels of one work, the next one comes and the
// one before goes. One kernel of all heads waits for each group in the warps that load, and stores
// gradients where they go.
template <typename Shapes>
class GradientsByHeads {
 public:
  GradientsByHeads(Program& program, const SequenceParallelAttention& o, bool of_lse, Made made)
      : o_(o),
        made_(made),
        program_(program),
        s_(shapes_of(program, o, made)),
        groups_(o.attention.kv_heads / o.ranks),
        launches_(made == Made::at_once ? 1 : groups_),
        of_launch_(o.attention),
        shapes_of_launch_(s_),
        arrived_(program.signals("arrived", arrival_words())),
        done_(program.signals("done", launches_ * o.ranks)),
        tensors_(static_cast<std::size_t>(launches_)) {
    const Attention& a = o.attention;
    of_launch_.heads /= o.ranks * launches_;
    of_launch_.kv_heads /= o.ranks * launches_;
    query_rows(shapes_of_launch_) = query_rows(s_) * o.ranks;
    key_rows(shapes_of_launch_) = key_rows(s_) * o.ranks;
    shapes_of_launch_.heads = of_launch_.heads;
    shapes_of_launch_.kv_heads = of_launch_.kv_heads;
    exchange("Q", Way::in, true, a.dim, &BackwardTensors::Q);
    exchange("K", Way::in, false, a.dim, &BackwardTensors::K);
    exchange("V", Way::in, false, a.dim_v, &BackwardTensors::V);
    declare_offsets();
    if (a.sinks) own_.sinks = program.in("sinks", f32, {a.heads});
    if (!makes_statistics()) {
      exchange("O", Way::in, true, a.dim_v, &BackwardTensors::O);
      exchange("LSE", Way::in, true, 0, &BackwardTensors::LSE);
      exchange("dO", Way::in, true, a.dim_v, &BackwardTensors::dO);
      if (of_lse) exchange("dLSE", Way::in, true, 0, &BackwardTensors::dLSE);
    } else {
      own_.O = program.in("O", a.dtype, s_.of_queries(a.dim_v));
      own_.LSE = program.in("LSE", f32, s_.of_rows());
      own_.dO = exchange("dO", Way::in, true, a.dim_v, &BackwardTensors::dO);
      if (of_lse) own_.dLSE = program.in("dLSE", f32, s_.of_rows());
      own_.L = exchange_statistic("L", &BackwardTensors::L);
      own_.D = exchange_statistic("D", &BackwardTensors::D);
    }
    exchange("dQ", Way::out, true, a.dim, &BackwardTensors::dQ);
    exchange("dK", Way::out, false, a.dim, &BackwardTensors::dK);
    exchange("dV", Way::out, false, a.dim_v, &BackwardTensors::dV);
    if (!a.sinks) return;
    own_.dsinks = program.out("dsinks", f32, {a.heads});
    for (int group = 0; group < groups_; ++group) {
      BackwardTensors& of_group = tensors_[static_cast<std::size_t>(group)];
      of_group.sinks = program.scratch(all_of("sinks", group), f32, {of_launch_.heads});
      of_group.dsinks = program.scratch(all_of("dsinks", group), f32, {of_launch_.heads});
    }
  }

  void record(const Caller& caller) {
    const bool is_sm90 = made_ != Made::by_tiles;
    BackwardKernels kernels;
    std::vector<Event> made;
    if (makes_statistics()) made = make_statistics(caller);
    if (is_sm90) send_at_once(caller);
    if (made_ == Made::at_once) {
      send_arrivals(caller);
      return record_at_once(caller);
    }
    for (int group = is_sm90 ? 1 : 0; group < groups_; ++group) send(group, made);
    for (int group = 0; group < groups_; ++group) {
      const std::string name = "math" + std::to_string(group % 2);
      std::vector<Stream> math;
      program_.on_each_rank([&](const Rank& rank) {
        math.push_back(rank.stream(name));
        for (int from = 0; from < o_.ranks; ++from) {
          math.back().wait(arrived_[word(group, from)], program_.run());
        }
        if (makes_statistics()) end_statistics(group, math.back());
        if (own_.sinks) {
          math.back().copy(*tensors_[static_cast<std::size_t>(group)].sinks,
                           of_heads(*own_.sinks, group, rank.number()));
        }
      });
      record_backward(of_launch_,
                      {program_, caller.function, shapes_of_launch_,
                       tensors_[static_cast<std::size_t>(group)], math, kernels, suffix(group)},
                      is_sm90, caller);
      if (is_sm90 && group == groups_ - 1) {
        give_back_at_once(math, caller);
      } else {
        give_back(group, math);
      }
    }
    // A run has ended when the others' gradients have come.
    program_.on_each_rank([&](const Rank& rank) {
      for (int group = 0; group < groups_; ++group) {
        for (int d = 1; d < rank.count(); ++d) {
          rank.stream("back").wait(done_[word(group, rank.next(d))], program_.run());
        }
      }
    });
  }

 private:
  static constexpr bool kPacked = key_axis(static_cast<const Shapes*>(nullptr)) == 0;
  // Whether a row's owner makes its numbers. Of packed sequences one kernel of all heads has them
  // in blocks of the axis, of which each has one owner.
  bool makes_statistics() const { return !kPacked || made_ == Made::at_once; }
  // One kernel of all heads stores whole blocks of rows at their owners: a block has rows of one
  // piece. Blocks of keys have 128.
  static Shapes shapes_of(Program& program, const SequenceParallelAttention& o, Made made) {
    const Attention& a = o.attention;
    if (made != Made::at_once) return Shapes(program, a);
    Shapes shapes(program, a, false, false);
    const int pieces = o.shards == Shards::zig_zag ? 2 : 1;
    const auto rows = [&](const char* of, int multiple) {
      return program.dim((kPacked ? "total_" : "") + std::string(of), multiple_of(multiple));
    };
    query_rows(shapes) = rows("queries", std::max(128, pieces * a.block_q));
    key_rows(shapes) = rows("keys", 256);
    return shapes;
  }
  static Dim& query_rows(BatchShapes& s) { return s.queries; }
  static Dim& query_rows(PackedShapes& s) { return s.total_queries; }
  static Dim& key_rows(BatchShapes& s) { return s.keys; }
  static Dim& key_rows(PackedShapes& s) { return s.total_keys; }

  // All heads, as they come.
  void record_at_once(const Caller& caller) {
    const BackwardTensors& t = tensors_[0];
    const BackwardPlan plan = heads_backward_plan(o_, of_launch_, kPacked, caller);
    const Shapes& s = shapes_of_launch_;
    const Dim parts = parts_of(plan);
    std::vector<Part> taken(t.offsets.begin(), t.offsets.end());
    const auto take_own = [&](Way way) {
      for (const Exchanged& each : exchanged_) {
        if (each.way == way) taken.push_back(each.own);
      }
    };
    take_own(Way::in);
    taken.insert(
        taken.end(),
        {arrived_, t.Q, t.K, t.V, t.dO, *t.L, *t.D,
         program_.scratch("sums", f32, plan.sums(of_launch_, s.kept_blocks(of_launch_.block_q)))});
    take_own(Way::out);
    taken.push_back(program_.zeroed("turns", i32, {backward_turns(of_launch_, plan, s, parts)}));
    if (plan.shares) {
      taken.push_back(
          program_.scratch("key_sums", f32, shared_sums(of_launch_, plan, s, parts).sums()));
    }
    const Kernel kernel = gradients_of_heads_sm90(o_, kPacked, caller.function, caller);
    program_.on_each_rank([&](const Rank& rank) {
      const Stream stream = rank.stream("math0");
      stream.launch(kernel, taken);
      for (int d = 1; d < rank.count(); ++d) {
        stream.write(done_.on(rank.next(d))[rank.number()], program_.run());
      }
      for (int d = 1; d < rank.count(); ++d) stream.wait(done_[rank.next(d)], program_.run());
    });
  }

  Dim parts_of(const BackwardPlan& plan) const {
    return HeadParts::wanted(of_launch_, shapes_of_launch_, plan.order());
  }
  // How many there are does not depend on their order.
  HeadArrivals arrivals() const { return HeadArrivals(own_backward_heads(o_), 1); }
  Dim arrival_words() const {
    return (made_ == Made::at_once ? arrivals().count() : groups_) * o_.ranks;
  }

  enum class Way { in, made, out };  // made: from what comes in
  // What a rank has, and of each group all rows of own heads. Statistics have no columns, and their
  // rows last.
  struct Exchanged {
    const char* name;
    Buffer own;
    std::vector<Buffer> all;
    Way way;
    bool of_queries;
    int heads, dim;  // heads of a group
  };
  std::size_t launch_of(int group) const {
    return made_ == Made::at_once ? 0 : static_cast<std::size_t>(group);
  }
  // Where sequences begin is the same in all ranks and groups.
  void declare_offsets() {
    if constexpr (kPacked) {
      for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"}) {
        const Buffer first_rows = program_.in(name, i32, s_.of_first_rows());
        for (BackwardTensors& of_group : tensors_) of_group.offsets.push_back(first_rows);
      }
    }
  }
  // Of rows of no sequence there are gradients too, which nothing computes: zeros.
  Buffer memory_of_group(Way way, const std::string& name, DType dtype,
                         const std::vector<Dim>& shape) {
    return kPacked && way == Way::out ? program_.zeroed(name, dtype, shape)
                                      : program_.scratch(name, dtype, shape);
  }
  template <typename Place>
  Buffer exchange(const char* name, Way way, bool of_queries, int dim, Place place) {
    const int heads = of_queries ? s_.heads : s_.kv_heads;
    const DType dtype = dim == 0 ? f32 : o_.attention.dtype;
    Exchanged each{name, {}, {}, way, of_queries, heads / (o_.ranks * groups_), dim};
    const std::vector<Dim> own = shape(each, rows(each), heads);
    each.own = way == Way::in ? program_.in(name, dtype, own) : program_.out(name, dtype, own);
    // What one kernel of all heads makes goes to its owners at once.
    const bool is_kept = way != Way::out || made_ != Made::at_once;
    for (int launch = 0; launch < launches_ && is_kept; ++launch) {
      each.all.push_back(
          memory_of_group(way, all_of(name, launch), dtype,
                          shape(each, rows(each) * o_.ranks, heads / (o_.ranks * launches_))));
      tensors_[static_cast<std::size_t>(launch)].*place = each.all.back();
    }
    exchanged_.push_back(each);
    return each.own;
  }
  // Kernels read statistics with rows of zeros behind the last, to a whole block.
  Buffer exchange_statistic(const char* name, std::optional<Buffer> BackwardTensors::*place) {
    Exchanged each{
        name, program_.scratch(name, f32, s_.of_rows()), {}, Way::made, true, of_launch_.heads, 0};
    for (int launch = 0; launch < launches_; ++launch) {
      each.all.push_back(program_.scratch(all_of(name, launch), f32,
                                          shapes_of_launch_.of_rows(of_launch_.block_q)));
      tensors_[static_cast<std::size_t>(launch)].*place = each.all.back();
    }
    statistics_.push_back(exchanged_.size());
    exchanged_.push_back(each);
    return each.own;
  }
  void end_statistics(int launch, const Stream& stream) const {
    const Dim rows = rows_of_all();
    const std::vector<Dim> kept = shapes_of_launch_.of_rows(of_launch_.block_q);
    for (const std::size_t each : statistics_) {
      const Part all = exchanged_[each].all[static_cast<std::size_t>(launch)];
      stream.zero(all.box({0, 0, rows}, {kept[0], kept[1], kept[2] - rows}));
    }
  }
  Dim rows_of_all() const {
    Shapes all = shapes_of_launch_;
    return query_rows(all);
  }
  static std::string suffix(int group) { return "_" + std::to_string(group); }
  static std::string all_of(const std::string& name, int group) {
    return "all_" + name + suffix(group);
  }
  // Of a vector with a number for each head.
  Part of_heads(const Part& all, int group, int rank) const {
    return all.rows((rank * groups_ + group) * of_launch_.heads, of_launch_.heads);
  }
  int word(int group, int rank) const { return group * o_.ranks + rank; }
  Dim rows(const Exchanged& each) const {
    Shapes own = s_;
    return each.of_queries ? query_rows(own) : key_rows(own);
  }
  std::vector<Dim> shape(const Exchanged& each, const Dim& rows, const Dim& heads) const {
    return in_sequences(
        each.dim == 0 ? std::vector<Dim>{heads, rows} : std::vector<Dim>{rows, heads, each.dim},
        s_.batch);
  }
  static std::vector<Dim> starts(const Exchanged& each, const Dim& row, const Dim& head) {
    return in_sequences(
        each.dim == 0 ? std::vector<Dim>{head, row} : std::vector<Dim>{row, head, 0}, 0);
  }
  static std::vector<Dim> in_sequences(std::vector<Dim> numbers, const Dim& of_sequences) {
    if (!kPacked) numbers.insert(numbers.begin(), of_sequences);
    return numbers;
  }

  // Of each rank's own rows, all heads: what is behind that.
  std::vector<Event> make_statistics(const Caller& caller) const {
    const auto make = kPacked ? packed_backward_statistics : backward_statistics;
    const Kernel kernel =
        make(o_.attention, own_.dLSE.has_value(), std::string(caller.function) + "_statistics");
    std::vector<Part> parts = {own_.O, own_.dO, own_.LSE};
    if (own_.dLSE) parts.push_back(*own_.dLSE);
    parts.insert(parts.end(), {*own_.L, *own_.D});
    std::vector<Event> made;
    program_.on_each_rank([&](const Rank& rank) {
      const Stream stream = rank.stream("math0");
      stream.launch(kernel, parts);
      made.push_back(stream.record());
    });
    return made;
  }

  // Some of a rank's own heads.
  struct Heads {
    Dim first, count;
  };
  Heads of_group(const Exchanged& each, int group) const {
    return {group * each.heads, each.heads};
  }

  // Calls `copy` for each piece of the rows of `rank`: in its own tensor those of some heads of
  // `of`, and among all rows of these.
  template <typename Copy>
  void each_piece(const Exchanged& each, int launch, const Heads& heads, int rank, int of,
                  const Copy& copy) const {
    const DividedAxis axis(rows(each), o_.ranks, o_.shards);
    const Dim first = of * groups_ * each.heads + heads.first;
    const Dim kept = made_ == Made::at_once ? heads.first : Dim(0);
    for (int number = 0; number < axis.pieces_of_rank(); ++number) {
      const Dim piece = number == 1 ? axis.late(Dim(rank)) : axis.early(Dim(rank));
      const Dim rows = number == 1 ? axis.late_rows() : axis.early_rows();
      const Dim from = number == 1 ? axis.early_rows() : Dim(0);
      const std::vector<Dim> sizes = shape(each, rows, heads.count);
      copy(each.own.on(rank).box(starts(each, from, first), sizes),
           each.all[static_cast<std::size_t>(launch)].on(of).box(
               starts(each, axis.start(piece), kept), sizes));
    }
  }
  // To each rank in a stream of its own; statistics last, which are there last.
  void send(int group, const std::vector<Event>& made) const {
    program_.on_each_rank([&](const Rank& rank) {
      for (int d = 0; d < rank.count(); ++d) {
        const int to = rank.next(d);
        const Stream stream = rank.stream("push" + std::to_string(d));
        const auto copy_all = [&](Way way) {
          for (const Exchanged& each : exchanged_) {
            if (each.way != way) continue;
            each_piece(each, group, of_group(each, group), rank.number(), to,
                       [&](const Part& own, const Part& all) { stream.copy(all, own); });
          }
        };
        if (group == 1 && made_ == Made::by_groups) await_sent(rank, stream);
        copy_all(Way::in);
        if (group == 0 && !made.empty()) stream.wait(made[static_cast<std::size_t>(rank.number())]);
        copy_all(Way::made);
        stream.write(arrived_.on(to)[word(group, rank.number())], program_.run());
      }
    });
  }
  // Behind what multiprocessors send at once, which has the link for itself.
  void await_sent(const Rank& rank, const Stream& stream) const {
    stream.wait(sent_[static_cast<std::size_t>(rank.number())]);
  }
  // What one kernel of all heads waits for while it works, but for the rank's own rows: these are
  // read where they are. All statistics came with the first arrival.
  void send_arrivals(const Caller& caller) const {
    const BackwardPlan plan = heads_backward_plan(o_, of_launch_, kPacked, caller);
    const HeadArrivals arrivals(of_launch_, parts_of(plan));
    const int group = of_launch_.heads / of_launch_.kv_heads;
    program_.on_each_rank([&](const Rank& rank) {
      for (int d = 1; d < rank.count() && arrivals.count() > 1; ++d) {
        const int to = rank.next(d);
        const Stream stream = rank.stream("push" + std::to_string(d));
        await_sent(rank, stream);
        for (int number = 1; number < arrivals.count(); ++number) {
          const HeadArrivals::Arrival now = arrivals.arrival(number);
          for (const Exchanged& each : exchanged_) {
            if (each.way != Way::in) continue;
            const Heads heads = each.of_queries
                                    ? Heads{now.kv_head * group + now.first_member, now.members}
                                    : Heads{now.kv_head, now.keys};
            each_piece(each, 0, heads, rank.number(), to,
                       [&](const Part& own, const Part& all) { stream.copy(all, own); });
          }
          stream.write(arrived_.on(to)[word(number, rank.number())], program_.run());
        }
      }
    });
  }
  // What comes before all arithmetic and what goes behind it hides under nothing: all
  // multiprocessors move it.
  Kernel exchange_at_once(ExchangeWay way, int group, const Caller& caller) const {
    std::vector<DividedTensor> tensors, others;
    for (const Exchanged& each : exchanged_) {
      const bool is_moved = (each.way == Way::out) == (way == ExchangeWay::back);
      (is_moved ? tensors : others)
          .push_back({each.name, each.dim == 0 ? f32 : o_.attention.dtype, each.of_queries,
                      each.of_queries ? s_.heads : s_.kv_heads, sent_at_once(each),
                      each.of_queries ? of_launch_.heads : of_launch_.kv_heads, each.dim,
                      each.way == Way::made ? of_launch_.block_q : 1,
                      made_ == Made::at_once && each.way == Way::in});
    }
    const char* const which = way == ExchangeWay::back ? "_last" : "_first";
    return heads_exchange_sm90(
        o_, kPacked, group, way, tensors, std::string(caller.function) + which,
        by_blocks_of_axis() ? std::optional(PackedExchange{others}) : std::nullopt);
  }
  // Of a group's heads.
  int sent_at_once(const Exchanged& each) const {
    const bool is_first = made_ == Made::at_once && each.way == Way::in && each.of_queries;
    return is_first ? arrivals().first_heads() : each.heads;
  }
  // One kernel of all heads of packed sequences stores no rows of no sequence: what exchanges
  // before it does.
  bool by_blocks_of_axis() const { return kPacked && made_ == Made::at_once; }
  std::vector<Part> exchanged_parts(ExchangeWay way, int group) const {
    std::vector<Part> parts;
    for (const Exchanged& each : exchanged_) {
      if ((each.way == Way::out) != (way == ExchangeWay::back)) continue;
      parts.insert(parts.end(), {each.own, each.all[launch_of(group)]});
    }
    if (!by_blocks_of_axis()) return parts;
    const std::vector<Buffer>& offsets = tensors_[launch_of(group)].offsets;
    parts.insert(parts.end(), offsets.begin(), offsets.end());
    for (const Exchanged& each : exchanged_) {
      if (each.way == Way::out) parts.push_back(each.own);
    }
    return parts;
  }
  // Behind the statistics, and before what copy engines bring.
  void send_at_once(const Caller& caller) {
    const Kernel kernel = exchange_at_once(ExchangeWay::to_heads, 0, caller);
    program_.on_each_rank([&](const Rank& rank) {
      const Stream stream = rank.stream("math0");
      stream.launch(kernel, exchanged_parts(ExchangeWay::to_heads, 0));
      sent_.push_back(stream.record());
      for (int d = made_ == Made::at_once ? 1 : 0; d < rank.count(); ++d) {
        stream.write(arrived_.on(rank.next(d))[word(0, rank.number())], program_.run());
      }
    });
  }
  void give_back_at_once(const std::vector<Stream>& math, const Caller& caller) const {
    const int group = groups_ - 1;
    const Kernel kernel = exchange_at_once(ExchangeWay::back, group, caller);
    program_.on_each_rank([&](const Rank& rank) {
      const Stream& stream = math[static_cast<std::size_t>(rank.number())];
      stream.launch(kernel, exchanged_parts(ExchangeWay::back, group));
      for (int d = 1; d <= rank.count(); ++d) {
        const int to = rank.next(d);
        give_sinks_back(stream, group, rank.number(), to);
        if (d == rank.count()) continue;
        stream.write(done_.on(to)[word(group, rank.number())], program_.run());
      }
    });
  }
  void give_sinks_back(const Stream& stream, int group, int rank, int to) const {
    if (!own_.dsinks) return;
    stream.copy(of_heads(own_.dsinks->on(to), group, rank),
                *tensors_[static_cast<std::size_t>(group)].dsinks);
  }
  void give_back(int group, const std::vector<Stream>& math) const {
    program_.on_each_rank([&](const Rank& rank) {
      const Stream back = rank.stream("back");
      back.wait(math[static_cast<std::size_t>(rank.number())].record());
      for (int d = 1; d <= rank.count(); ++d) {
        const int to = rank.next(d);
        for (const Exchanged& each : exchanged_) {
          if (each.way != Way::out) continue;
          each_piece(each, group, of_group(each, group), to, rank.number(),
                     [&](const Part& own, const Part& all) { back.copy(own, all); });
        }
        give_sinks_back(back, group, rank.number(), to);
        if (d == rank.count()) continue;
        back.write(done_.on(to)[word(group, rank.number())], program_.run());
      }
    });
  }

  const SequenceParallelAttention& o_;
  Made made_;
  Program& program_;
  Shapes s_;
  int groups_, launches_;
  Attention of_launch_;      // the heads of a launch, all rows
  Shapes shapes_of_launch_;  // of that
  Buffer arrived_, done_;
  std::vector<Exchanged> exchanged_;
  std::vector<std::size_t> statistics_;  // which of these
  std::vector<Event> sent_;  // of each rank: what multiprocessors send at once has left it
  BackwardTensors own_;      // of a rank: what its statistics are made of
  std::vector<BackwardTensors> tensors_;  // of each launch
};

template <typename Shapes>
Program gradients(const SequenceParallelAttention& o, bool of_lse, Made made,
                  const Caller& caller) {
  check_attention_ranks(o, caller);
  // Of a head of keys that ranks share each would have a part of the gradients.
  const bool is_packed = std::is_same_v<Shapes, PackedShapes>;
  if (made != Made::at_once && !divides_heads(o)) {
    return gradients_in_ring(o, of_lse, is_packed, caller);
  }
  if (made == Made::at_once) heads_backward_plan(o, own_backward_heads(o), is_packed, caller);
  Program program(caller.function, o.ranks, caller.where);
  GradientsByHeads<Shapes>(program, o, of_lse, made).record(caller);
  return program;
}

}  // namespace

Program sequence_parallel_attention_backward(const SequenceParallelAttention& o, bool of_lse,
                                             SourceLocation where) {
  return gradients<BatchShapes>(o, of_lse, Made::by_tiles,
                                {"sequence_parallel_attention_backward", where});
}

Program sequence_parallel_varlen_attention_backward(const SequenceParallelAttention& o, bool of_lse,
                                                    SourceLocation where) {
  return gradients<PackedShapes>(o, of_lse, Made::by_tiles,
                                 {"sequence_parallel_varlen_attention_backward", where});
}

Program sequence_parallel_varlen_attention_backward_sm90(const SequenceParallelAttention& o,
                                                         bool of_lse, SourceLocation where) {
  return gradients<PackedShapes>(o, of_lse, Made::by_groups,
                                 {"sequence_parallel_varlen_attention_backward_sm90", where});
}

Program sequence_parallel_attention_backward_sm90(const SequenceParallelAttention& o, bool of_lse,
                                                  SourceLocation where) {
  return gradients<BatchShapes>(o, of_lse, Made::by_groups,
                                {"sequence_parallel_attention_backward_sm90", where});
}

Program sequence_parallel_varlen_attention_backward_heads_sm90(const SequenceParallelAttention& o,
                                                               bool of_lse, SourceLocation where) {
  return gradients<PackedShapes>(o, of_lse, Made::at_once,
                                 {"sequence_parallel_varlen_attention_backward_heads_sm90", where});
}

Program sequence_parallel_attention_backward_heads_sm90(const SequenceParallelAttention& o,
                                                        bool of_lse, SourceLocation where) {
  return gradients<BatchShapes>(o, of_lse, Made::at_once,
                                {"sequence_parallel_attention_backward_heads_sm90", where});
}

}  // namespace tilewright::kernels

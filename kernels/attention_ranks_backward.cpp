#include <algorithm>
#include <string>
#include <vector>

#include "kernels/attention_backward_record.h"
#include "kernels/attention_ranks.h"

// The gradients of attention over ranks, by heads: each rank gets all rows of its own heads, makes
// their gradients as one GPU does, and gives those of the others' rows back.
namespace tilewright::kernels {

void check_attention_ranks_backward(const SequenceParallelAttention& o, const Caller& caller) {
  check_attention_ranks(o, caller);
  const Attention& a = o.attention;
  const auto refuse = [&](const std::string& what, const std::string& fix) {
    caller.refuse(what + ", for " + std::to_string(o.ranks) + " ranks", fix);
  };
  // Of a head of keys that ranks share each would have a part of the gradients.
  if (a.kv_heads % o.ranks != 0) {
    refuse("kv_heads is " + std::to_string(a.kv_heads), "take a multiple of the ranks");
  }
  if (a.sinks) refuse("sinks", "leave them out: every rank would need all of their gradients");
}

namespace {

// A rank's heads come and go in groups: while the kernels of one work, the next one comes and the
// one before goes. Two of them work at once, so that the second one takes the multiprocessors that
// the end of the first leaves free.
class GradientsByHeads {
 public:
  GradientsByHeads(Program& program, const SequenceParallelAttention& o)
      : o_(o),
        program_(program),
        s_(program, o.attention),
        groups_(o.attention.kv_heads / o.ranks),
        arrived_(program.signals("arrived", groups_ * o.ranks)),
        done_(program.signals("done", groups_ * o.ranks)),
        tensors_(static_cast<std::size_t>(groups_)) {
    const Attention& a = o.attention;
    const bool in = true, out = false;
    exchange("Q", in, true, a.dim, &BackwardTensors::Q);
    exchange("K", in, false, a.dim, &BackwardTensors::K);
    exchange("V", in, false, a.dim_v, &BackwardTensors::V);
    exchange("O", in, true, a.dim_v, &BackwardTensors::O);
    exchange("LSE", in, true, 0, &BackwardTensors::LSE);
    exchange("dO", in, true, a.dim_v, &BackwardTensors::dO);
    exchange("dQ", out, true, a.dim, &BackwardTensors::dQ);
    exchange("dK", out, false, a.dim, &BackwardTensors::dK);
    exchange("dV", out, false, a.dim_v, &BackwardTensors::dV);
  }

  void record(bool is_sm90, const Caller& caller) const {
    Attention own = o_.attention;
    own.heads /= o_.ranks * groups_;
    own.kv_heads /= o_.ranks * groups_;
    BatchShapes shapes = s_;
    shapes.queries = s_.queries * o_.ranks;
    shapes.keys = s_.keys * o_.ranks;
    shapes.heads = own.heads;
    shapes.kv_heads = own.kv_heads;
    BackwardKernels kernels;
    for (int group = 0; group < groups_; ++group) send(group);
    for (int group = 0; group < groups_; ++group) {
      const std::string name = "math" + std::to_string(group % 2);
      std::vector<Stream> math;
      program_.on_each_rank([&](const Rank& rank) {
        math.push_back(rank.stream(name));
        for (int from = 0; from < o_.ranks; ++from) {
          math.back().wait(arrived_[word(group, from)], program_.run());
        }
      });
      record_backward(own,
                      {program_, caller.function, shapes, tensors_[static_cast<std::size_t>(group)],
                       math, kernels, suffix(group)},
                      is_sm90, caller);
      give_back(group, math);
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
  // What a caller passes, and of each group all rows of own heads. LSE has no columns, and its rows
  // last.
  struct Exchanged {
    Buffer own;
    std::vector<Buffer> all;
    bool is_input, of_queries;
    int heads, dim;  // heads of a group
  };
  void exchange(const char* name, bool is_input, bool of_queries, int dim,
                Buffer BackwardTensors::*place) {
    const int heads = of_queries ? s_.heads : s_.kv_heads;
    const DType dtype = dim == 0 ? f32 : o_.attention.dtype;
    Exchanged each{{}, {}, is_input, of_queries, heads / (o_.ranks * groups_), dim};
    const std::vector<Dim> own = shape(each, rows(each), heads);
    each.own = is_input ? program_.in(name, dtype, own) : program_.out(name, dtype, own);
    for (int group = 0; group < groups_; ++group) {
      Buffer& all = tensors_[static_cast<std::size_t>(group)].*place;
      all = program_.scratch("all_" + std::string(name) + suffix(group), dtype,
                             shape(each, rows(each) * o_.ranks, each.heads));
      each.all.push_back(all);
    }
    exchanged_.push_back(each);
  }
  static std::string suffix(int group) { return "_" + std::to_string(group); }
  int word(int group, int rank) const { return group * o_.ranks + rank; }
  const Dim& rows(const Exchanged& each) const { return each.of_queries ? s_.queries : s_.keys; }
  std::vector<Dim> shape(const Exchanged& each, const Dim& rows, int heads) const {
    if (each.dim == 0) return {s_.batch, heads, rows};
    return {s_.batch, rows, heads, each.dim};
  }
  std::vector<Dim> starts(const Exchanged& each, const Dim& row, int head) const {
    if (each.dim == 0) return {0, head, row};
    return {0, row, head, 0};
  }

  // Calls `copy` for each piece of the rows of `rank`: in its own tensor those of a group of heads
  // of `of`, and among all rows of these.
  template <typename Copy>
  void each_piece(const Exchanged& each, int group, int rank, int of, const Copy& copy) const {
    const DividedAxis axis(rows(each), o_.ranks, o_.shards);
    const int first = (of * groups_ + group) * each.heads;
    for (int number = 0; number < axis.pieces_of_rank(); ++number) {
      const Dim piece = number == 1 ? axis.late(Dim(rank)) : axis.early(Dim(rank));
      const Dim rows = number == 1 ? axis.late_rows() : axis.early_rows();
      const Dim from = number == 1 ? axis.early_rows() : Dim(0);
      const std::vector<Dim> sizes = shape(each, rows, each.heads);
      copy(each.own.on(rank).box(starts(each, from, first), sizes),
           each.all[static_cast<std::size_t>(group)].on(of).box(starts(each, axis.start(piece), 0),
                                                                sizes));
    }
  }
  // To each rank in a stream of its own.
  void send(int group) const {
    program_.on_each_rank([&](const Rank& rank) {
      for (int d = 0; d < rank.count(); ++d) {
        const int to = rank.next(d);
        const Stream stream = rank.stream("push" + std::to_string(d));
        for (const Exchanged& each : exchanged_) {
          if (!each.is_input) continue;
          each_piece(each, group, rank.number(), to,
                     [&](const Part& own, const Part& all) { stream.copy(all, own); });
        }
        stream.write(arrived_.on(to)[word(group, rank.number())], program_.run());
      }
    });
  }
  void give_back(int group, const std::vector<Stream>& math) const {
    program_.on_each_rank([&](const Rank& rank) {
      const Stream back = rank.stream("back");
      back.wait(math[static_cast<std::size_t>(rank.number())].record());
      for (int d = 1; d <= rank.count(); ++d) {
        const int to = rank.next(d);
        for (const Exchanged& each : exchanged_) {
          if (each.is_input) continue;
          each_piece(each, group, to, rank.number(),
                     [&](const Part& own, const Part& all) { back.copy(own, all); });
        }
        if (d == rank.count()) continue;
        back.write(done_.on(to)[word(group, rank.number())], program_.run());
      }
    });
  }

  const SequenceParallelAttention& o_;
  Program& program_;
  BatchShapes s_;
  int groups_;
  Buffer arrived_, done_;
  std::vector<Exchanged> exchanged_;
  std::vector<BackwardTensors> tensors_;  // of each group
};

Program gradients(const SequenceParallelAttention& o, bool is_sm90, const Caller& caller) {
  check_attention_ranks_backward(o, caller);
  Program program(caller.function, o.ranks, caller.where);
  GradientsByHeads(program, o).record(is_sm90, caller);
  return program;
}

}  // namespace

Program sequence_parallel_attention_backward(const SequenceParallelAttention& o,
                                             SourceLocation where) {
  return gradients(o, false, {"sequence_parallel_attention_backward", where});
}

Program sequence_parallel_attention_backward_sm90(const SequenceParallelAttention& o,
                                                  SourceLocation where) {
  return gradients(o, true, {"sequence_parallel_attention_backward_sm90", where});
}

}  // namespace tilewright::kernels

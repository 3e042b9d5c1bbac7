#include <string>
#include <vector>

#include "kernels/all_to_all_parts.h"
#include "kernels/attention_backward_record.h"
#include "kernels/attention_ranks.h"

// The gradients of attention over ranks, by heads: each rank gets all rows of its own heads, makes
// their gradients as one GPU does, and gives those of the others' rows back.
namespace tilewright::kernels {
namespace {

void check_gradients(const SequenceParallelAttention& o, const Caller& caller) {
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

class ExchangedGradients {
 public:
  ExchangedGradients(Program& program, const SequenceParallelAttention& o)
      : o_(o),
        program_(program),
        s_(program, o.attention),
        arrived_(program.signals("arrived", o.ranks)),
        done_(program.signals("done", o.ranks)) {
    const Attention& a = o.attention;
    const bool in = true, out = false;
    exchange("Q", in, true, a.dim, tensors_.Q);
    exchange("K", in, false, a.dim, tensors_.K);
    exchange("V", in, false, a.dim_v, tensors_.V);
    exchange("O", in, true, a.dim_v, tensors_.O);
    exchange("LSE", in, true, 0, tensors_.LSE);
    exchange("dO", in, true, a.dim_v, tensors_.dO);
    exchange("dQ", out, true, a.dim, tensors_.dQ);
    exchange("dK", out, false, a.dim, tensors_.dK);
    exchange("dV", out, false, a.dim_v, tensors_.dV);
  }

  void record(bool is_sm90, const Caller& caller) const {
    std::vector<Stream> math;
    program_.on_each_rank([&](const Rank& rank) {
      const Stream push = rank.stream("push");
      for (int d = 1; d < rank.count(); ++d) {
        const int to = rank.next(d);
        for (const Exchanged& each : exchanged_) {
          if (each.is_input) send(push, each, rank.number(), to);
        }
        push.write(arrived_.on(to)[rank.number()], program_.run());
      }
      math.push_back(rank.stream("math"));
      for (const Exchanged& each : exchanged_) {
        if (each.is_input) send(math.back(), each, rank.number(), rank.number());
      }
      await(rank, math.back(), arrived_);
    });
    Attention own = o_.attention;
    own.heads /= o_.ranks;
    own.kv_heads /= o_.ranks;
    BatchShapes shapes = s_;
    shapes.queries = s_.queries * o_.ranks;
    shapes.keys = s_.keys * o_.ranks;
    shapes.heads = own.heads;
    shapes.kv_heads = own.kv_heads;
    record_backward(program_, own, shapes, tensors_, math, is_sm90, caller);
    program_.on_each_rank([&](const Rank& rank) {
      const Stream& stream = math[static_cast<std::size_t>(rank.number())];
      for (int d = 0; d < rank.count(); ++d) {
        const int to = rank.next(d);
        for (const Exchanged& each : exchanged_) {
          if (!each.is_input) give_back(stream, each, rank.number(), to);
        }
        if (d > 0) stream.write(done_.on(to)[rank.number()], program_.run());
      }
      await(rank, stream, done_);
    });
  }

 private:
  // What a caller passes, and all rows of own heads. LSE has no columns, and its rows last.
  struct Exchanged {
    Buffer own, all;
    bool is_input, of_queries;
    int heads, dim;
  };
  void exchange(const char* name, bool is_input, bool of_queries, int dim, Buffer& all) {
    const int heads = of_queries ? s_.heads : s_.kv_heads;
    const DType dtype = dim == 0 ? f32 : o_.attention.dtype;
    Exchanged each{{}, {}, is_input, of_queries, heads, dim};
    const std::vector<Dim> own = shape(each, rows(each), heads);
    each.own = is_input ? program_.in(name, dtype, own) : program_.out(name, dtype, own);
    each.all = program_.scratch(std::string("all_") + name, dtype,
                                shape(each, rows(each) * o_.ranks, heads / o_.ranks));
    all = each.all;
    exchanged_.push_back(each);
  }
  const Dim& rows(const Exchanged& each) const { return each.of_queries ? s_.queries : s_.keys; }
  std::vector<Dim> shape(const Exchanged& each, const Dim& rows, int heads) const {
    if (each.dim == 0) return {s_.batch, heads, rows};
    return {s_.batch, rows, heads, each.dim};
  }
  std::vector<Dim> starts(const Exchanged& each, const Dim& row, int head) const {
    if (each.dim == 0) return {0, head, row};
    return {0, row, head, 0};
  }

  // Calls `copy` for each piece of the rows of `rank`: in its own tensor those of the heads of
  // another, and among all of that.
  template <typename Copy>
  void each_piece(const Exchanged& each, int rank, int heads_of, const Copy& copy) const {
    const DividedAxis axis(rows(each), o_.ranks, o_.shards);
    const int count = each.heads / o_.ranks;
    for (int number = 0; number < axis.pieces_of_rank(); ++number) {
      const Dim piece = number == 1 ? axis.late(Dim(rank)) : axis.early(Dim(rank));
      const Dim rows = number == 1 ? axis.late_rows() : axis.early_rows();
      const Dim from = number == 1 ? axis.early_rows() : Dim(0);
      const std::vector<Dim> sizes = shape(each, rows, count);
      copy(each.own.on(rank).box(starts(each, from, heads_of * count), sizes),
           each.all.on(heads_of).box(starts(each, axis.start(piece), 0), sizes));
    }
  }
  void send(const Stream& stream, const Exchanged& each, int rank, int to) const {
    each_piece(each, rank, to, [&](const Part& own, const Part& all) { stream.copy(all, own); });
  }
  void give_back(const Stream& stream, const Exchanged& each, int rank, int to) const {
    each_piece(each, to, rank, [&](const Part& own, const Part& all) { stream.copy(own, all); });
  }
  void await(const Rank& rank, const Stream& stream, const Buffer& words) const {
    for (int d = 1; d < rank.count(); ++d) {
      stream.wait(words[rank.next(d)], program_.run());
    }
  }

  const SequenceParallelAttention& o_;
  Program& program_;
  BatchShapes s_;
  Buffer arrived_, done_;
  std::vector<Exchanged> exchanged_;
  BackwardTensors tensors_;
};

Program gradients(const SequenceParallelAttention& o, bool is_sm90, const Caller& caller) {
  check_gradients(o, caller);
  Program program(caller.function, o.ranks, caller.where);
  ExchangedGradients(program, o).record(is_sm90, caller);
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

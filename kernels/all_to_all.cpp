#include <optional>
#include <string>
#include <vector>

#include "kernels/all_to_all_parts.h"
#include "kernels/rank_words.h"
#include "kernels/token_places.h"
#include "tilewright/target.h"

namespace tilewright::kernels {

std::vector<ExchangedHeads> exchanged(const AllToAll& o, Direction direction) {
  if (direction == Direction::back) {
    return {{"O", true, o.ranks, o.heads, o.own_heads(), o.dim_v}};
  }
  return {{"Q", true, o.ranks, o.heads, o.own_heads(), o.dim},
          {"K", false, o.ranks, o.kv_heads, o.own_kv_heads(), o.dim},
          {"V", false, o.ranks, o.kv_heads, o.own_kv_heads(), o.dim_v}};
}

void check_all_to_all(const AllToAll& o, const Caller& caller) {
  caller.check_positive("heads", o.heads);
  caller.check_positive("kv_heads", o.kv_heads);
  caller.check_positive("dim", o.dim);
  caller.check_positive("dim_v", o.dim_v);
  const std::string ranks = std::to_string(o.ranks) + " ranks";
  if (o.ranks < 2 || o.ranks > 8) caller.refuse(ranks, "there are 2 to 8");
  const std::string heads = std::to_string(o.heads) + " heads";
  const std::string kv_heads = std::to_string(o.kv_heads) + " KV heads";
  if (o.heads % o.ranks != 0) {
    caller.refuse(heads + " for " + ranks, "each rank has as many: take a multiple of " +
                                               std::to_string(o.ranks) + " heads");
  }
  if (o.heads % o.kv_heads != 0) {
    caller.refuse(kv_heads + " beside " + heads, "take a divisor of the heads");
  }
  if (o.kv_heads % o.ranks != 0 && o.ranks % o.kv_heads != 0) {
    caller.refuse(kv_heads + " for " + ranks,
                  "each rank has whole heads that its own attend to: take a multiple or a divisor "
                  "of " +
                      std::to_string(o.ranks));
  }
}

void check_all_to_all_sm90(const AllToAll& o, Direction direction, const Caller& caller) {
  check_all_to_all(o, caller);
  const std::int64_t bytes = target_limits("sm_90a").copy_bytes;
  for (const ExchangedHeads& part : exchanged(o, direction)) {
    const std::int64_t row = std::int64_t{part.dim} * size_of(o.dtype);
    if (row % bytes == 0) continue;
    caller.refuse("rows of " + std::to_string(row) + " bytes of " + part.name,
                  "take dims of whole " + std::to_string(bytes) + " bytes, or the tile level");
  }
}

namespace {

constexpr int kPulledRows = 64;  // of a tile of the tile level

// Of one tensor.
Kernel pulled_heads(const AllToAll& o, const ExchangedHeads& part, Direction direction) {
  const bool back = direction == Direction::back;
  Kernel kernel(back ? "all_to_all_back" : "all_to_all");
  const Dim batch = kernel.dim("batch"), tokens = kernel.dim("tokens");
  std::vector<Dim> own{tokens, part.heads, part.dim}, all{o.ranks * tokens, part.own, part.dim};
  if (!o.packed) {
    own.insert(own.begin(), batch);
    all.insert(all.begin(), batch);
  }
  const Tensor X = kernel.symmetric("X", o.dtype, back ? all : own);
  std::optional<Tensor> first_rows;
  if (o.packed) first_rows.emplace(kernel.in("cu_seqlens", i32, {o.ranks, batch + 1}));
  const Tensor Y = kernel.out("Y", o.dtype, back ? own : all);
  const TokenPlaces places(o.ranks, batch, tokens, first_rows);
  const auto [tile, head, other] = kernel.grid(places.tiles(kPulledRows), part.own, o.ranks);
  const Index me = kernel.rank();
  const auto [sequence, own_rows, all_rows] = places.place(back ? me : other, tile, kPulledRows);
  const Index first = part.first(back ? other : me) + head;
  const Tensor from = X.at(other);
  if (back) {
    store(places.at(Y, sequence, own_rows, first, tilewright::all),
          load(places.at(from, sequence, all_rows, head, tilewright::all)));
  } else {
    store(places.at(Y, sequence, all_rows, head, tilewright::all),
          load(places.at(from, sequence, own_rows, first, tilewright::all)));
  }
  return kernel;
}

// The tensors that a caller passes.
struct ExchangeProgram {
  ExchangeProgram(const AllToAll& o, Direction direction, const Caller& caller)
      : program(caller.function, o.ranks, caller.where),
        dims(program, o, direction),
        parts(exchanged(o, direction)) {
    const bool back = direction == Direction::back;
    for (const ExchangedHeads& part : parts) {
      from.push_back(back ? program.in(part.name + std::string("_all"), o.dtype, dims.all(part))
                          : program.in(part.name, o.dtype, dims.own(part)));
    }
    if (o.packed) {
      first_rows.push_back(program.in("cu_seqlens_q", i32, dims.first_rows()));
      if (!back) first_rows.push_back(program.in("cu_seqlens_k", i32, dims.first_rows()));
    }
    for (const ExchangedHeads& part : parts) {
      to.push_back(back ? program.out(part.name, o.dtype, dims.own(part))
                        : program.out(part.name + std::string("_all"), o.dtype, dims.all(part)));
    }
  }
  Program program;
  ExchangeDims dims;
  std::vector<ExchangedHeads> parts;
  std::vector<Buffer> from, first_rows, to;
};

Program pulled_program(const AllToAll& o, Direction direction, const Caller& caller) {
  check_all_to_all(o, caller);
  const ExchangeProgram made(o, direction, caller);
  std::vector<Kernel> kernels;
  for (const ExchangedHeads& part : made.parts) kernels.push_back(pulled_heads(o, part, direction));
  made.program.on_each_rank([&](const Rank& rank) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      std::vector<Part> tensors{made.from[i]};
      if (o.packed) tensors.push_back(made.first_rows[made.parts[i].of_queries ? 0 : 1]);
      tensors.push_back(made.to[i]);
      rank.stream().launch(kernels[i], tensors);
    }
  });
  return made.program;
}

Program pushed_program(const AllToAll& o, Direction direction, const Caller& caller) {
  check_all_to_all_sm90(o, direction, caller);
  ExchangeProgram made(o, direction, caller);
  const Kernel kernel = all_to_all_kernel_sm90(o, direction, caller);
  std::vector<Part> tensors(made.from.begin(), made.from.end());
  tensors.insert(tensors.end(), made.first_rows.begin(), made.first_rows.end());
  tensors.insert(tensors.end(), made.to.begin(), made.to.end());
  tensors.push_back(made.program.signals("begun", RanksBegin::words(o.ranks)));
  tensors.push_back(made.program.signals("arrived", RanksArrive::words(o.ranks)));
  made.program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, tensors); });
  return made.program;
}

// What rank `of` takes of rank `from`'s tensor, or gives to it.
Part own_tokens(const ExchangeProgram& made, const Part& tensor, std::size_t number, int of) {
  const ExchangedHeads& part = made.parts[number];
  return tensor.box({0, 0, part.first(of), 0},
                    {made.dims.batch, made.dims.tokens(part), part.own, part.dim});
}
Part all_tokens(const ExchangeProgram& made, const Part& tensor, std::size_t number, int of) {
  const ExchangedHeads& part = made.parts[number];
  const Dim& tokens = made.dims.tokens(part);
  return tensor.box({0, of * tokens, 0, 0}, {made.dims.batch, tokens, part.own, part.dim});
}

Program copied_program(const AllToAll& o, Direction direction, const Caller& caller) {
  check_all_to_all(o, caller);
  if (o.packed) {
    caller.refuse("sequences are packed",
                  "the host does not know their lengths: take a schedule that pushes tiles");
  }
  ExchangeProgram made(o, direction, caller);
  // Words of each other rank, which count up with the runs: it has begun, and its part has arrived.
  const Buffer begun = made.program.signals("begun", o.ranks);
  const Buffer arrived = made.program.signals("arrived", o.ranks);
  const auto copy = [&](const Stream& by, int from, int to) {
    for (std::size_t i = 0; i < made.parts.size(); ++i) {
      const Part target = made.to[i].on(to);
      if (direction == Direction::back) {
        by.copy(own_tokens(made, target, i, from), all_tokens(made, made.from[i], i, to));
      } else {
        by.copy(all_tokens(made, target, i, from), own_tokens(made, made.from[i], i, to));
      }
    }
  };
  // Step by step of all ranks: one host may queue them all, and nothing then waits for what is not
  // queued yet. The caller's stream, which is the first one, waits for none of the words.
  made.program.on_each_rank([&](const Rank& rank) {
    for (int d = 1; d < rank.count(); ++d) {
      rank.stream().write(begun.on(rank.next(d))[rank.number()], made.program.run());
    }
  });
  made.program.on_each_rank([&](const Rank& rank) {
    const Stream push = rank.stream("push");
    const int me = rank.number();
    for (int d = 1; d < rank.count(); ++d) {
      const int to = rank.next(d);
      push.wait(begun[to], made.program.run());
      copy(push, me, to);
      push.write(arrived.on(to)[me], made.program.run());
    }
    copy(rank.stream("keep"), me, me);
  });
  made.program.on_each_rank([&](const Rank& rank) {
    for (int d = 1; d < rank.count(); ++d) {
      rank.stream("push").wait(arrived[rank.next(d)], made.program.run());
    }
  });
  return made.program;
}

}  // namespace

Program all_to_all(const AllToAll& o, SourceLocation where) {
  return pulled_program(o, Direction::to_heads, {"all_to_all", where});
}
Program all_to_all_sm90(const AllToAll& o, SourceLocation where) {
  return pushed_program(o, Direction::to_heads, {"all_to_all_sm90", where});
}
Program all_to_all_copied(const AllToAll& o, SourceLocation where) {
  return copied_program(o, Direction::to_heads, {"all_to_all_copied", where});
}
Program all_to_all_back(const AllToAll& o, SourceLocation where) {
  return pulled_program(o, Direction::back, {"all_to_all_back", where});
}
Program all_to_all_back_sm90(const AllToAll& o, SourceLocation where) {
  return pushed_program(o, Direction::back, {"all_to_all_back_sm90", where});
}
Program all_to_all_back_copied(const AllToAll& o, SourceLocation where) {
  return copied_program(o, Direction::back, {"all_to_all_back_copied", where});
}

}  // namespace tilewright::kernels

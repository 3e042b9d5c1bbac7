#include "language/tracer.h"

// Sequences: runs of rows of an axis.
namespace tilewright {

Index Sequence::begin(SourceLocation where) const { return part_ ? part_->first : Index(0, where); }
Index Sequence::end(SourceLocation where) const {
  return part_ ? part_->second : Index(axis_, where);
}

Index Sequence::blocks(int size, SourceLocation where) const {
  if (!part_) return Index(ceil_div(axis_, size), where);
  const Tracer::At at(Tracer::get("blocks", where), where);
  const Index count = ceil_div(part_->second - first_block(size, where), size);
  if (blocks_ == BlocksFrom::sequence) return count;
  return select(part_->first < part_->second, count, 0);
}

Index Sequence::first_block(int size, SourceLocation where) const {
  const Tracer::At at(Tracer::get("first_block", where), where);
  return blocks_ == BlocksFrom::sequence ? begin(where) : begin(where) / size * size;
}

Block Sequence::block(const Index& index, int size, SourceLocation where) const {
  if (size <= 0) {
    Diagnostic(where, "block: the size " + std::to_string(size) + " is not positive")
        .token("block")
        .fix("give the number of elements of a block")
        .raise();
  }
  Tracer& tracer = Tracer::get("block", where);
  const Tracer::At at(tracer, where);
  if (!part_) return Block(index * size, size, Index(axis_));
  const Index first = first_block(size, where) + index * size;
  if (blocks_ == BlocksFrom::sequence) return Block(first, size, part_->second, axis_);
  return Block(max(first, part_->first), size, min(first + size, part_->second), axis_);
}

Ragged::Ragged(const Dim& axis, const Tensor& offsets, BlocksFrom blocks, SourceLocation where)
    : axis_(axis), offsets_(offsets), blocks_(blocks) {
  Tracer& tracer = Tracer::get("Ragged", where);
  const ir::Parameter& parameter =
      *tracer.kernel().parameter_of(tracer.use(offsets.handle(), "Ragged", where));
  if (parameter.dtype != i32 || parameter.shape.size() != 1) {
    Diagnostic(where, "Ragged: " + parameter.name + " is no vector of i32")
        .token("Ragged")
        .note(parameter.where, parameter.name + " is declared")
        .fix("declare it as in(name, i32, {sequences + 1})")
        .raise();
  }
  sequences_ = parameter.shape[0] - 1;
}

Sequence Ragged::of(const IndexOperand& sequence) const {
  const Tracer::At at(Tracer::get("of", sequence.where), sequence.where);
  const Index end = offset(sequence.index + 1, sequence.where);
  return Sequence(axis_, offset(sequence.index, sequence.where), min(end, axis_), blocks_);
}

Index Ragged::offset(const Index& number, SourceLocation where) const {
  return load_index(offsets_(number), {axis_, /*ascending=*/true}, where);
}

// Sequence b is given the tiles from offsets[b] / size + b up to that of b + 1. They are enough,
// since (begin + length) / size - begin / size is at least length / size, and their first ones
// ascend, so that the last one not past the number is the sequence's. max tells the
// compiler what the search ensures.
Ragged::Tile Ragged::tile(const IndexOperand& number, int size) const {
  Tracer& tracer = Tracer::get("tile", number.where);
  const Tracer::At at(tracer, number.where);
  const auto first = [&](const Index& sequence) {
    return load_index(offsets_(sequence), number.where) / size + sequence;
  };
  const Index wanted = number + first(Index(0));
  Cell<Index> low(Index(0)), high{Index(sequences_)};
  Cell<Condition> more(Index(1) < high);
  repeat_while(more, [&] {
    const Index middle = (low + high) / 2;
    const Condition reached = first(middle) <= wanted;
    low = select(reached, middle, low);
    high = select(reached, high, middle);
    more = low + 1 < high;
  });
  const Index sequence = low;
  const Index own = offset(sequence, number.where) / size + sequence;
  return {sequence, max(wanted - own, 0)};
}

}  // namespace tilewright

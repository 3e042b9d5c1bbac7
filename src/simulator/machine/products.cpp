#include <fmt/format.h>

#include <algorithm>

#include "simulator/machine/gpu.h"
#include "simulator/machine/matrix_descriptor.h"
#include "simulator/matrix_product.h"
#include "support/number_formats.h"

// wgmma: operands are read as descriptors say, see matrix_descriptor.h.
namespace tilewright::simulator {
namespace {

constexpr std::size_t kDecodedOperands = 64;  // of a CTA, kept for the warps that share them
constexpr int kRows = 16;                     // of m64, of each of the four warps

enum Timing { at_issue, in_between, at_wait };

// Reads chunks of 16 bytes for one warp's share of a product.
class Reader {
 public:
  Reader(Gpu& gpu, Warp& warp, const Instruction& instruction, const MatrixOperand& operand,
         DType dtype)
      : gpu_(gpu), warp_(warp), instruction_(instruction), operand_(operand), dtype_(dtype) {
    const Allocation& allocation = gpu.program.allocations[operand.allocation];
    low_ = allocation.offset;
    high_ = allocation.offset + allocation.bytes() - 16;
  }

  // 16 bytes as floats; zeros where they are out of bounds.
  void chunk(std::int64_t address, float* to) {
    const int count = 16 / size_of(dtype_);
    const SharedMemory& shared = warp_.cta->shared;
    if (address < low_ || address > high_) {
      std::fill(to, to + count, 0.0f);
      gpu_.inside(warp_, instruction_, operand_.allocation, address, 16);
      return;
    }
    if (!shared.chunk_initialised(address)) {
      gpu_.check_held(warp_, instruction_, *warp_.cta, operand_.allocation, address, 16);
    }
    to_float(dtype_, shared.at(address), to, count);
    first_ = std::min(first_, address);
    last_ = std::max(last_, address + 15);
  }
  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }

 private:
  Gpu& gpu_;
  Warp& warp_;
  const Instruction& instruction_;
  const MatrixOperand& operand_;
  DType dtype_;
  std::int64_t low_ = 0, high_ = 0;
  std::int64_t first_ = INT64_MAX, last_ = 0;
};

// `rows` of M or N from `first` on, k elements each, to to[k * k_stride + mn * mn_stride].
void read_matrix(Reader& reader, const SharedMatrix& matrix, int first, int rows, int k,
                 int element_bytes, float* to, int mn_stride, int k_stride) {
  const int per_chunk = 16 / element_bytes;
  float values[16];
  if (matrix.transposed) {
    for (int i = 0; i < k; ++i) {
      for (int mn = 0; mn < rows; mn += per_chunk) {
        reader.chunk(matrix.mn_major((first + mn) / per_chunk, i), values);
        for (int e = 0; e < per_chunk; ++e) to[i * k_stride + (mn + e) * mn_stride] = values[e];
      }
    }
    return;
  }
  for (int mn = 0; mn < rows; ++mn) {
    for (int i = 0; i < k; i += per_chunk) {
      reader.chunk(matrix.k_major(first + mn, i / per_chunk), values);
      for (int e = 0; e < per_chunk; ++e) to[(i + e) * k_stride + mn * mn_stride] = values[e];
    }
  }
}

// Two products read the same B when the same instruction's descriptor starts at the same address.
const float* read_b(Gpu& gpu, Warp& warp, const PendingProduct& pending, const Product& product) {
  Cta& cta = *warp.cta;
  for (const DecodedOperand& decoded : cta.decoded) {
    if (decoded.product == &product && decoded.address == pending.b &&
        cta.shared.last_change(decoded.first, decoded.last) <= decoded.time) {
      return decoded.values.data();
    }
  }
  if (cta.decoded.size() < kDecodedOperands) cta.decoded.emplace_back();
  DecodedOperand& decoded = cta.decoded[cta.next_decoded++ % kDecodedOperands];
  decoded.values.resize(static_cast<std::size_t>(product.n) * product.k);
  Reader reader(gpu, warp, *pending.instruction, product.b, product.dtype);
  read_matrix(reader, decode_descriptor(product.b, pending.b), 0, product.n, product.k,
              size_of(product.dtype), decoded.values.data(), 1, product.n);
  const bool any = reader.first() <= reader.last();
  decoded.product = any ? &product : nullptr;
  decoded.address = pending.b;
  decoded.first = reader.first();
  decoded.last = reader.last();
  decoded.time = cta.shared.time();
  return decoded.values.data();
}

// A as [16][k]. In registers, lane l holds of 32-bit register j (of four) row l / 4 + 8 (j & 1) and
// the elements from 4 bytes * (l % 4) + 16 bytes * (j / 2) on.
void read_a(Gpu& gpu, Warp& warp, const PendingProduct& pending, const Product& product,
            float* to) {
  const int bytes = size_of(product.dtype);
  if (product.a_array < 0) {
    Reader reader(gpu, warp, *pending.instruction, product.a, product.dtype);
    return read_matrix(reader, decode_descriptor(product.a, pending.a), warp.index % 4 * kRows,
                       kRows, product.k, bytes, to, product.k, 1);
  }
  const int packed = 4 / bytes;
  for (int i = 0; i < 4 * packed; ++i) {
    const float* row = warp.arrays[product.a_array].row<float>(product.a_element + i);
    const int j = i / packed;
    for (int l = 0; l < kLanes; ++l) {
      const int k = l % 4 * packed + i % packed + j / 2 * 4 * packed;
      to[(l / 4 + 8 * (j & 1)) * product.k + k] = row[l];
    }
  }
}

// Calls `visit(tile index, register index, lane)` for the accumulator of m64nN: lane l holds in
// register i row l / 4 + 8 (i & 2) / 2 and column i / 4 * 8 + l % 4 * 2 + (i & 1).
template <typename Visit>
void for_accumulator(int n, Visit visit) {
  for (int i = 0; i < n / 2; ++i) {
    for (int l = 0; l < kLanes; ++l) {
      const int row = l / 4 + ((i & 2) ? 8 : 0);
      const int column = i / 4 * 8 + l % 4 * 2 + (i & 1);
      visit(row * n + column, i * kLanes + l);
    }
  }
}

// The accumulator of the product being run as a row-major tile; successive products on the same
// one do not move it.
class AccumulatorTile {
 public:
  explicit AccumulatorTile(Warp& warp) : warp_(warp) {}
  ~AccumulatorTile() { put(); }
  AccumulatorTile(const AccumulatorTile&) = delete;
  AccumulatorTile& operator=(const AccumulatorTile&) = delete;

  float* take(int array, int n, bool accumulate) {
    if (array != array_) {
      put();
      array_ = array;
      n_ = n;
      values_.resize(static_cast<std::size_t>(kRows) * n);
      if (accumulate) {
        const float* registers = warp_.arrays[array].f.data();
        for_accumulator(n, [&](int tile, int reg) { values_[tile] = registers[reg]; });
      }
    }
    if (!accumulate) std::fill(values_.begin(), values_.end(), 0.0f);
    return values_.data();
  }

 private:
  void put() {
    if (array_ < 0) return;
    float* registers = warp_.arrays[array_].f.data();
    for_accumulator(n_, [&](int tile, int reg) { registers[reg] = values_[tile]; });
  }

  Warp& warp_;
  int array_ = -1;
  int n_ = 0;
  std::vector<float> values_;
};

void check_fence(Gpu& gpu, Warp& warp, const Instruction& instruction, int array) {
  if (!warp.arrays[array].touched) return;
  const RegisterInfo& info = gpu.program.registers[array];
  gpu.log.add({"wgmma", instruction.where(), info.where,
               fmt::format("wgmma: {} may still be in use by earlier instructions\n{}", info.name,
                           gpu.access("issue", instruction, warp)),
               fmt::format("wgmma_fence between the last use of {} and the product", info.name)});
}

// A's registers must not be what an earlier product still writes.
void check_fragment(Gpu& gpu, Warp& warp, const Instruction& instruction, int array) {
  for (const PendingProduct& pending : warp.products) {
    if (gpu.program.products[pending.instruction->detail].accumulator != array) continue;
    gpu.log.add({"wgmma", instruction.where(), pending.instruction->where(),
                 fmt::format("wgmma: {} is in flight as an accumulator and read as A\n{}\n{}",
                             gpu.program.registers[array].name,
                             gpu.access("write", *pending.instruction, warp),
                             gpu.access("read", instruction, warp)),
                 "wgmma_wait between them"});
  }
}

void check_registers(Gpu& gpu, Warp& warp, const Instruction& instruction, const Product& product,
                     bool accumulate) {
  check_fence(gpu, warp, instruction, product.accumulator);
  // An accumulator that a product in flight writes is read by the next one in order.
  if (accumulate) check_written(gpu, warp, instruction, product.accumulator, 0, product.n / 2);
  if (product.a_array < 0) return;
  check_fence(gpu, warp, instruction, product.a_array);
  check_fragment(gpu, warp, instruction, product.a_array);
  check_written(gpu, warp, instruction, product.a_array, product.a_element,
                16 / size_of(product.dtype));
}

void check_descriptor(Gpu& gpu, const Warp& warp, const Instruction& instruction,
                      const MatrixOperand& operand, char name) {
  const int base_offset = static_cast<int>(operand.descriptor >> 49 & 7);
  if (base_offset == 0) return;
  gpu.log.add(
      {"wgmma",
       instruction.where(),
       {},
       fmt::format("wgmma: descriptor_{} {:#x} has base offset {}; patterns start at "
                   "aligned addresses here, so that it is 0\n{}",
                   name, operand.descriptor, base_offset, gpu.access("issue", instruction, warp)),
       {}});
}

// Tells that the product reads its operands from now until its group is waited for.
void read_operands(Gpu& gpu, const Warp& warp, const Instruction& instruction,
                   const PendingProduct& pending) {
  if (!gpu.order.enabled()) return;
  const Product& product = gpu.program.products[instruction.detail];
  const int agent = gpu.order.agents().at(warp.cta->rank(), Agents::Kind::products, warp.index);
  const Access access = gpu.order.by_unit(warp, instruction, {false, /*async=*/true, false}, agent,
                                          static_cast<Epoch>(warp.product_groups + 1));
  const auto read = [&](const MatrixOperand& operand, std::int64_t start, int first, int rows) {
    const Footprint& touched = gpu.footprints.of(gpu.program, operand, product, start, first, rows);
    for (const auto& [block, cells] : touched) {
      gpu.order.shared_block(warp, access, *warp.cta, operand.allocation, block,
                             {cells, Bytes::kWhole});
    }
  };
  read(product.b, pending.b, 0, product.n);
  if (product.a_array < 0) read(product.a, pending.a, warp.index % 4 * kRows, kRows);
}

}  // namespace

void issue_product(Gpu& gpu, Warp& warp, const Instruction& instruction) {
  const Product& product = gpu.program.products[instruction.detail];
  PendingProduct pending;
  pending.instruction = &instruction;
  pending.accumulate = warp.integer(product.accumulate) != 0;
  pending.sequence = ++warp.product_sequence;
  const auto start = [&](const MatrixOperand& operand) {
    return gpu.program.allocations[operand.allocation].offset + warp.integer(operand.offset) +
           operand.step;
  };
  check_registers(gpu, warp, instruction, product, pending.accumulate);
  check_descriptor(gpu, warp, instruction, product.b, 'b');
  pending.b = start(product.b);
  if (product.a_array < 0) {
    check_descriptor(gpu, warp, instruction, product.a, 'a');
    pending.a = start(product.a);
  } else {
    ++warp.arrays[product.a_array].in_flight;
  }
  read_operands(gpu, warp, instruction, pending);
  RegisterArray& accumulator = warp.arrays[product.accumulator];
  ++accumulator.in_flight;
  std::fill(accumulator.written.begin(), accumulator.written.end(), 1);
  accumulator.unwritten = 0;

  const bool first_of_group = warp.products.empty() || warp.products.back().group >= 0;
  if (first_of_group) warp.product_timing = static_cast<int>(gpu.random.below(3));
  warp.products.push_back(pending);
  if (warp.product_timing == at_issue) run_products(gpu, warp, pending.sequence);
}

void run_products(Gpu& gpu, Warp& warp, std::uint64_t last) {
  AccumulatorTile tile(warp);
  float a[kRows * 32];
  for (PendingProduct& pending : warp.products) {
    if (pending.sequence > last) break;
    if (pending.done) continue;
    pending.done = true;
    const Product& product = gpu.program.products[pending.instruction->detail];
    read_a(gpu, warp, pending, product, a);
    const float* b = read_b(gpu, warp, pending, product);
    float* c = tile.take(product.accumulator, product.n, pending.accumulate);
    multiply_add<float>(kRows, product.n, product.k, {a, product.k}, {b, product.n},
                        {c, product.n});
  }
}

void commit_products(Gpu& gpu, Warp& warp) {
  bool any = false;
  for (PendingProduct& pending : warp.products) {
    if (pending.group >= 0) continue;
    pending.group = warp.product_groups;
    any = true;
  }
  ++warp.product_groups;
  if (!any || warp.product_timing != in_between) return;
  Event event;
  event.kind = Event::Kind::products;
  event.issuer = &warp;
  event.sequence = warp.product_sequence;
  gpu.events.push_back(std::move(event));
}

void wait_products(Gpu& gpu, Warp& warp, const Instruction& instruction) {
  const std::int64_t groups = warp.product_groups - instruction.value;
  gpu.order.complete(warp, instruction.elected, Agents::Kind::products, warp.index, groups);
  const auto awaited = [&](const PendingProduct& pending) {
    return pending.group >= 0 && pending.group < groups;
  };
  std::uint64_t last = 0;
  for (const PendingProduct& pending : warp.products) {
    if (awaited(pending)) last = pending.sequence;
  }
  run_products(gpu, warp, last);
  while (!warp.products.empty() && awaited(warp.products.front())) {
    const Product& product = gpu.program.products[warp.products.front().instruction->detail];
    --warp.arrays[product.accumulator].in_flight;
    if (product.a_array >= 0) --warp.arrays[product.a_array].in_flight;
    warp.products.pop_front();
  }
}

}  // namespace tilewright::simulator

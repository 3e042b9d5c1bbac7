#include "explain/report/layout_svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "ir/modes.h"
#include "support/diagnostic.h"

namespace tilewright::explanations {
namespace {

constexpr std::int64_t kMostRows = 64, kMostColumns = 32;
constexpr int kCellWidth = 26, kCellHeight = 13, kLeft = 34, kTop = 42;
constexpr std::int64_t kChunkBytes = 16, kLineBytes = 128, kLineChunks = kLineBytes / kChunkBytes;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

// Text is black on light fills, so that it can be read on any page.
class Drawing {
 public:
  Drawing(std::int64_t content_width, std::int64_t height, const std::string& title,
          const std::string& legend) {
    const auto lengths = std::max(title.size() * 15 / 2, legend.size() * 6);
    const std::int64_t width = std::max(content_width, static_cast<std::int64_t>(lengths) + 12);
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"8\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
        "<text x=\"6\" y=\"14\" font-size=\"12\" font-weight=\"bold\">{2}</text>\n"
        "<text x=\"6\" y=\"28\" font-size=\"9\" fill=\"#555\">{3}</text>\n",
        width, height, escaped(title), escaped(legend));
  }
  void cell(std::int64_t x, std::int64_t y, std::int64_t width, const std::string& fill,
            const std::string& label, const std::string& tip) {
    text_ += fmt::format(
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
        "stroke=\"#fff\" stroke-width=\"0.6\"/><text x=\"{}\" y=\"{}\" "
        "text-anchor=\"middle\">{}</text></g>\n",
        escaped(tip), x, y, width, kCellHeight, fill, x + width / 2, y + 9, escaped(label));
  }
  void note(std::int64_t x, std::int64_t y, const std::string& label, const char* anchor = "end") {
    text_ += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#555\" text-anchor=\"{}\">{}</text>\n", x,
                         y, anchor, escaped(label));
  }
  std::string finish() { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

// Who holds an element: the first of them, and how many lanes there are in all.
struct Holder {
  std::int64_t reg = 0, lane = 0, warp = 0;
  int lanes = 0;
};

using Holders = std::map<std::pair<std::int64_t, std::int64_t>, Holder>;  // by row and column

Holders holders_of(const ir::RegisterLayout& layout) {
  Holders holders;
  for (std::int64_t warp = 0; warp < layout.warp_count(); ++warp) {
    for (std::int64_t lane = 0; lane < ir::kLanes; ++lane) {
      for (std::int64_t reg = 0; reg < layout.register_count(); ++reg) {
        const std::vector<std::int64_t> at = layout.coordinates(reg, lane, warp);
        std::int64_t row = 0;  // all axes but the last, in their order
        for (std::size_t axis = 0; axis + 1 < at.size(); ++axis) {
          row = row * layout.shape[axis] + at[axis];
        }
        const auto [entry, fresh] =
            holders.emplace(std::pair(row, at.back()), Holder{reg, lane, warp});
        entry->second.lanes += 1;
      }
    }
  }
  return holders;
}

// Neighbours in a row that one lane holds in neighbouring registers.
std::int64_t run_of(const Holders& holders, std::int64_t row, std::int64_t column,
                    std::int64_t columns) {
  const Holder& first = holders.at({row, column});
  std::int64_t run = 1;
  while (column + run < columns) {
    const Holder& next = holders.at({row, column + run});
    if (next.lane != first.lane || next.warp != first.warp || next.reg != first.reg + run) break;
    ++run;
  }
  return run;
}

std::string lane_colour(std::int64_t lane, std::int64_t warp) {
  // Neighbouring lanes differ in hue, warps in lightness.
  return fmt::format("hsl({} 65% {}%)", lane * 360 / ir::kLanes, 86 - 6 * (warp % 4));
}

std::string chunk_colour(std::int64_t chunk) {
  return fmt::format("hsl({} 65% 80%)", chunk * 360 / kLineChunks);
}

// The panels of a tile in 16-byte chunks: where chunk (row, number) lies.
struct Chunks {
  std::int64_t rows = 0, columns = 0, elements = 0;                  // elements of a chunk
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> at;  // by chunk of memory
};

std::optional<Chunks> chunks_of(const ir::SharedLayout& layout) {
  if (layout.shape.size() != 2 || layout.size_bytes() < kLineBytes ||
      kChunkBytes % layout.element_bytes != 0) {
    return std::nullopt;
  }
  Chunks chunks;
  chunks.elements = kChunkBytes / layout.element_bytes;
  chunks.rows = layout.shape[0];
  chunks.columns = layout.shape[1] / chunks.elements;
  if (layout.shape[1] % chunks.elements != 0) return std::nullopt;
  for (std::int64_t row = 0; row < chunks.rows; ++row) {
    for (std::int64_t column = 0; column < chunks.columns; ++column) {
      const std::int64_t first = layout.offset(row, column * chunks.elements);
      const std::int64_t last = layout.offset(row, (column + 1) * chunks.elements - 1);
      if (first % kChunkBytes != 0 || last - first != kChunkBytes - layout.element_bytes) {
        return std::nullopt;
      }
      chunks.at[first / kChunkBytes] = {row, column};
    }
  }
  return chunks;
}

std::string first_place(const SourceLocation& where) {
  const std::string text = format_location(where);
  return text.substr(text.find_last_of('/') + 1);
}

}  // namespace

std::string register_layout_svg(const ir::RegisterLayout& layout, const std::string& title) {
  const std::int64_t all_columns = layout.shape.back();
  const std::int64_t all_rows = std::accumulate(layout.shape.begin(), layout.shape.end() - 1,
                                                std::int64_t{1}, std::multiplies<>());
  const std::int64_t rows = std::min(all_rows, kMostRows);
  const std::int64_t columns = std::min(all_columns, kMostColumns);
  const auto holders = holders_of(layout);
  const std::string cut = rows < all_rows || columns < all_columns
                              ? fmt::format("; the first {} x {} elements", rows, columns)
                              : "";
  const std::int64_t width = kCellWidth * (columns == 1 ? 4 : 1);
  Drawing drawing(
      std::max<std::int64_t>(kLeft + columns * width + 56, 460), kTop + 12 + rows * kCellHeight + 8,
      title,
      fmt::format("lane:register of each element, {} registers a lane{}{}", layout.register_count(),
                  layout.is_partial() ? ", partial sums" : "", cut));
  for (std::int64_t column = 0; column < columns; column += columns == 1 ? 1 : 4) {
    drawing.note(kLeft + column * width + 2, kTop + 8, std::to_string(column), "start");
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t y = kTop + 12 + row * kCellHeight;
    drawing.note(kLeft - 4, y + 9, std::to_string(row));
    for (std::int64_t column = 0; column < columns;) {
      const Holder& holder = holders.at({row, column});
      const std::int64_t run = run_of(holders, row, column, columns);
      const std::string registers = run == 1
                                        ? std::to_string(holder.reg)
                                        : fmt::format("{}-{}", holder.reg, holder.reg + run - 1);
      const std::string others =
          holder.lanes > 1 ? fmt::format(" and {} more", holder.lanes - 1) : "";
      drawing.cell(
          kLeft + column * width, y, run * width, lane_colour(holder.lane, holder.warp),
          fmt::format("{}:{}{}", holder.lane, registers,
                      holder.lanes > 1 ? fmt::format(" +{}", holder.lanes - 1) : ""),
          fmt::format("row {}, columns {} to {}: warp {}, lane {}, registers {}{}", row, column,
                      column + run - 1, holder.warp, holder.lane, registers, others));
      column += run;
    }
    const std::int64_t warp = holders.at({row, 0}).warp;
    if (row == 0 || holders.at({row - 1, 0}).warp != warp) {
      drawing.note(kLeft + columns * width + 6, y + 9, fmt::format("warp {}", warp), "start");
    }
  }
  return drawing.finish();
}

std::string shared_layout_svg(const ir::SharedLayout& layout, const std::string& title) {
  const std::optional<Chunks> chunks = chunks_of(layout);
  if (!chunks) return {};
  const std::int64_t rows = std::min<std::int64_t>(chunks->rows, 16);
  const std::int64_t columns = std::min<std::int64_t>(chunks->columns, 16);
  const std::int64_t lines = std::min<std::int64_t>(layout.size_bytes() / kLineBytes, 16);
  constexpr std::int64_t width = 34;
  const std::int64_t memory = kLeft + columns * width + 70;
  Drawing drawing(
      std::max<std::int64_t>(memory + kLineChunks * width + 20, 520),
      kTop + 12 + 16 * kCellHeight + 8, title,
      fmt::format("left: the banks of every 16 bytes (first {} rows, {} columns); right: "
                  "row,chunk that lies there, in lines of 128 bytes under the first bank",
                  rows, columns * chunks->elements));
  for (const auto& [chunk, element] : chunks->at) {
    const auto& [row, column] = element;
    const std::int64_t bank = chunk % kLineChunks;
    const std::string tip = fmt::format(
        "row {}, columns {} to {}: byte {}, banks {} to {}", row, column * chunks->elements,
        (column + 1) * chunks->elements - 1, chunk * kChunkBytes, 4 * bank, 4 * bank + 3);
    if (row < rows && column < columns) {
      drawing.cell(kLeft + column * width, kTop + 12 + row * kCellHeight, width, chunk_colour(bank),
                   fmt::format("{}-{}", 4 * bank, 4 * bank + 3), tip);
    }
    if (chunk / kLineChunks < lines) {
      drawing.cell(memory + bank * width, kTop + 12 + chunk / kLineChunks * kCellHeight, width,
                   chunk_colour(bank), fmt::format("{},{}", row, column), tip);
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    drawing.note(kLeft - 4, kTop + 21 + row * kCellHeight, std::to_string(row));
  }
  for (std::int64_t line = 0; line < lines; ++line) {
    drawing.note(memory - 4, kTop + 21 + line * kCellHeight, std::to_string(line * kLineBytes));
  }
  for (std::int64_t column = 0; column < columns; ++column) {
    drawing.note(kLeft + column * width + 2, kTop + 8, std::to_string(column * chunks->elements),
                 "start");
  }
  for (std::int64_t bank = 0; bank < kLineChunks; ++bank) {
    drawing.note(memory + bank * width + 2, kTop + 8, std::to_string(4 * bank), "start");
  }
  return drawing.finish();
}

std::vector<LayoutPicture> layout_pictures(const ir::Kernel& scheduled) {
  struct Use {
    const ir::RegisterLayout* layout;
    SourceLocation where;
    std::vector<std::string> dtypes;
    int count = 0;
  };
  std::vector<Use> uses;
  std::map<std::string, std::size_t> known;
  std::vector<LayoutPicture> pictures;
  ir::for_each(scheduled.body, [&](const ir::Operation& operation) {
    for (const ir::ValueId result : operation.results) {
      const ir::Type& type = scheduled.type(result);
      if (type.layout.lanes.empty()) continue;
      const auto [at, fresh] = known.emplace(type.layout.to_string(), uses.size());
      if (fresh) uses.push_back({&type.layout, operation.where, {}});
      Use& use = uses[at->second];
      ++use.count;
      const std::string dtype(name_of(type.dtype));
      if (std::count(use.dtypes.begin(), use.dtypes.end(), dtype) == 0) use.dtypes.push_back(dtype);
    }
  });
  for (const Use& use : uses) {
    const std::string shape = fmt::format("{}", fmt::join(use.layout->shape, "x"));
    const std::string title =
        fmt::format("{} in registers: {} value{} ({}), the first at {}", shape, use.count,
                    use.count == 1 ? "" : "s", fmt::join(use.dtypes, ", "), first_place(use.where));
    pictures.push_back({fmt::format("registers-{}-{}", pictures.size() + 1, shape), title,
                        register_layout_svg(*use.layout, title)});
  }
  for (const ir::Operation& operation : scheduled.body.body) {
    if (operation.op != ir::Op::shared) continue;
    const ir::SharedLayout& layout = operation.attributes.shared_layout();
    const std::string name = operation.attributes.text(ir::Key::name);
    const std::string title = fmt::format(
        "{}: {} {} in shared memory, {}-byte swizzle", name,
        name_of(scheduled.type(operation.results[0]).dtype), fmt::join(layout.shape, "x"),
        layout.swizzle.bits == 0 ? 0 : kChunkBytes << layout.swizzle.bits);
    const std::string svg = shared_layout_svg(layout, title);
    if (!svg.empty()) pictures.push_back({"shared-" + name, title, svg});
  }
  return pictures;
}

}  // namespace tilewright::explanations

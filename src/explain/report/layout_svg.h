#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

// Pictures of layouts, each one SVG without anything external.
namespace tilewright::explanations {

// Which warp, lane and register holds each element of a tile, whose axes before the last are rows;
// large tiles are cut, and the title says so.
std::string register_layout_svg(const ir::RegisterLayout& layout, const std::string& title);

// Where each 16 bytes of a tile lie: the tile on the left, the memory in lines of 128 bytes on the
// right. A colour is a group of four banks. Empty for tiles of less than a line, or whose 16 bytes
// are no neighbours.
std::string shared_layout_svg(const ir::SharedLayout& layout, const std::string& title);

struct LayoutPicture {
  std::string name;   // fit for a file: "registers-1-64x128"
  std::string title;  // what has it, and where
  std::string svg;
};
// Every layout of a kernel of the scheduled form once: those of its tiles in registers, those of
// its places in shared memory.
std::vector<LayoutPicture> layout_pictures(const ir::Kernel& scheduled);

}  // namespace tilewright::explanations

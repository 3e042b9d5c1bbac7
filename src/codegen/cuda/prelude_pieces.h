#pragma once

#include <span>
#include <string_view>

namespace tilewright::codegen {

struct Piece {
  std::string_view name;  // of the function; the first pieces are what all need
  std::string_view text;
};

// Types, functions of numbers, and elements that share registers. A piece may call those above it.
std::span<const Piece> arithmetic_pieces();
std::span<const Piece> tensor_memory_pieces();

}  // namespace tilewright::codegen

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/npy.h"

namespace tilewright {

// Whether the text has the form "file.safetensors:key", or names such a file without a key.
bool is_safetensors(std::string_view text);

// Reads one tensor, "file.safetensors:key", without reading the others. BF16, F16, F32, F64,
// F8_E4M3, I8, U8, I32, I64, U16, U32 and BOOL. An unknown key is a usage error that lists the
// keys.
NpyArray read_safetensors(const std::string& text);

// Of all tensors of the file: what read_safetensors() takes behind the colon.
std::vector<std::string> safetensors_keys(const std::string& path);

// The file appears all at once, with the tensors in this order; an old one survives a failure.
void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, NpyArray>>& tensors);

}  // namespace tilewright

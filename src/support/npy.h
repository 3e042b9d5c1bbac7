#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// A dense array of the host in row-major order. `descr` is NumPy's name of the element type: "<f2",
// "<f4", "<f8", "<u2", "<i4", "<i8", "|i1", "|u1" or "|b1"; or "bf16" or "f8e4m3", which NumPy
// lacks.
struct NpyArray {
  std::string descr;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

// What the raw words of a file are: ("<u2", or "|V2", which is how ml_dtypes saves a bf16), or
// ("|u1", "|V1"). Only the caller can know.
enum class NpyRaw { plain, bf16, f8e4m3 };

// Bytes of one element, or 0 for a `descr` that is not supported.
int64_t npy_element_size(std::string_view descr);
// Bytes of the elements, or -1 when a size is negative or the product overflows.
int64_t npy_data_size(std::string_view descr, const std::vector<int64_t>& shape);

// Versions 1 to 3 of the format. What is wrong with the file is a usage error that names the fix.
NpyArray read_npy(const std::string& path, NpyRaw raw = NpyRaw::plain);

// The file appears all at once; an old one survives a failure. "bf16" is written as "<u2" and
// "f8e4m3" as "|u1", which `.view(ml_dtypes.bfloat16)` turns back.
void write_npy(const std::string& path, const NpyArray& array);

}  // namespace tilewright

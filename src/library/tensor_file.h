#pragma once

#include <string>

#include "support/npy.h"
#include "tilewright/host_tensor.h"

namespace tilewright::library {

// Reads "x.npy" or "x.safetensors:key" as the tensor `name` of the dtype. A file of another dtype
// is a usage error, except that bf16 and f8e4m3, which NumPy lacks, are also read from f32 and
// rounded.
HostTensor read_tensor(const std::string& file, const std::string& name, DType dtype);

// Its elements by the names of npy.h.
NpyArray array_of(const HostTensor& tensor);

// Raises a usage error when write_tensor would fail: to be called before long work.
void check_writable(const std::string& path, const std::string& name);

// As .npy, all at once: an old file stays intact when it fails. bf16 and f8e4m3 are written as f32,
// which holds every value of them.
void write_tensor(const std::string& path, const HostTensor& tensor);

}  // namespace tilewright::library

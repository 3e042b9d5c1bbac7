#include "library/tensor_file.h"

#include <fmt/format.h>

#include "support/diagnostic.h"
#include "support/file.h"
#include "support/npy.h"
#include "support/number_formats.h"
#include "support/safetensors.h"

namespace tilewright::library {
namespace {

// As npy.h names element types.
std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "<f4";
    case DType::f16:
      return "<f2";
    case DType::bf16:
      return "bf16";
    case DType::f8e4m3:
      return "f8e4m3";
    case DType::i32:
      return "<i4";
    case DType::i64:
      return "<i8";
    case DType::i8:
      return "|i1";
    case DType::u8:
      return "|u1";
    case DType::u32:
      return "<u4";
    case DType::boolean:
      break;
  }
  return "|b1";
}

bool numpy_lacks(DType dtype) { return dtype == DType::bf16 || dtype == DType::f8e4m3; }

NpyRaw raw_of(DType dtype) {
  if (dtype == DType::bf16) return NpyRaw::bf16;
  if (dtype == DType::f8e4m3) return NpyRaw::f8e4m3;
  return NpyRaw::plain;
}

}  // namespace

HostTensor read_tensor(const std::string& file, const std::string& name, DType dtype) {
  NpyArray array = is_safetensors(file) ? read_safetensors(file) : read_npy(file, raw_of(dtype));
  if (array.descr == descr_of(dtype)) {
    return HostTensor::from_bytes(dtype, array.shape, std::move(array.data));
  }
  if (array.descr != "<f4" || !numpy_lacks(dtype)) {
    Diagnostic({}, fmt::format("{}: holds {}, and tensor {} is {}", file, array.descr, name,
                               name_of(dtype)))
        .fix(fmt::format("save array.astype('{}'), or set the kernel's dtype to the file's",
                         numpy_lacks(dtype) ? "<f4" : descr_of(dtype)))
        .raise();
  }
  const std::size_t count = array.data.size() / sizeof(float);
  std::vector<float> values(count);
  to_float(DType::f32, array.data.data(), values.data(), count);
  std::vector<std::byte> bytes(count * static_cast<std::size_t>(size_of(dtype)));
  from_float(dtype, values.data(), bytes.data(), count);
  return HostTensor::from_bytes(dtype, array.shape, std::move(bytes));
}

NpyArray array_of(const HostTensor& tensor) {
  return {std::string(descr_of(tensor.dtype())),
          tensor.shape(),
          {tensor.data(), tensor.data() + tensor.size_bytes()}};
}

void check_writable(const std::string& path, const std::string& name) {
  if (is_safetensors(path)) {
    Diagnostic({}, fmt::format("{}: output {} is written as .npy, and the name says safetensors",
                               path, name))
        .fix(fmt::format("name a .npy file, such as {}.npy", name))
        .raise();
  }
  const std::string why = why_not_writable(path);
  if (why.empty()) return;
  Diagnostic({}, fmt::format("{}: output {} cannot be written there: {}", path, name, why))
      .fix("name a file in a folder that exists and that you may write to")
      .raise();
}

void write_tensor(const std::string& path, const HostTensor& tensor) {
  if (!numpy_lacks(tensor.dtype())) return write_npy(path, array_of(tensor));
  const auto count = static_cast<std::size_t>(tensor.elements());
  std::vector<float> values(count);
  to_float(tensor.dtype(), tensor.data(), values.data(), count);
  std::vector<std::byte> data(count * sizeof(float));
  from_float(DType::f32, values.data(), data.data(), count);
  write_npy(path, {"<f4", tensor.shape(), std::move(data)});
}

}  // namespace tilewright::library

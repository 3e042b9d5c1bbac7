#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::codegen {

// Writes a machine-form kernel as text, one line an operation, as `file`:1, 2, ...
class MachineText {
 public:
  explicit MachineText(std::string_view header) : text_(header) {}

  // A new value: "%12: TYPE = OPERATION".
  std::string value(std::string_view type, std::string_view operation) {
    std::string name = fresh();
    line(fmt::format("{}: {} = {}", name, type, operation));
    return name;
  }
  std::string integer(std::int64_t value_of) {
    return value("i32", fmt::format("constant {{value = {}}}", value_of));
  }
  std::string fresh() { return fmt::format("%{}", next_++); }
  void line(std::string_view text) { text_ += fmt::format("{}\n", text); }
  void open(std::string_view head) { line(fmt::format("{} {{", head)); }
  void close() { line("}"); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int next_ = 100;
};

// C = A B^T with 128 x 256 tiles, 64 deep, in four stages: one loading warpgroup and two that
// multiply; persistent.
std::string gemm_text();

// O = softmax(Q K^T) V for 128 x 128 tiles of head dimension 128, one tile of queries a CTA.
std::string attention_text();

// Kernels that have every operation of the machine form between them (build_test.cpp).
struct MachineSample {
  const char* name;
  std::string text;
  bool exact;  // ptxas may add nothing to it
};
std::vector<MachineSample> machine_samples();

}  // namespace tilewright::codegen
